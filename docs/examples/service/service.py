"""A service that answers with a class and the radius within which it provably stays, or abstains.

SMOOTHCTL_MODEL=runs/student uvicorn service:app
curl --data-binary @image.png http://127.0.0.1:8000/certify
"""

import io
import os
from typing import Annotated

from fastapi import Body, FastAPI, HTTPException

import smoothctl

N = int(os.environ.get("SMOOTHCTL_N", "1000"))
ALPHA = float(os.environ.get("SMOOTHCTL_ALPHA", "0.001"))

model = smoothctl.load_model(os.environ.get("SMOOTHCTL_MODEL", "runs/student"))
app = FastAPI(title="smoothctl")


@app.get("/")
def about():
    """What is served, and how sure an answer is."""
    info = model.info
    return {
        "arch": info.arch, "classes": info.class_names, "input_shape": info.input_shape, "sigma": info.sigma,
        "noise": info.noise, "n": N, "alpha": ALPHA, "sha256": model.sha256,
    }  # fmt: skip


@app.post("/certify")
def certify(image: Annotated[bytes, Body(media_type="application/octet-stream")]):
    """The class of an image file, or none, and its radius: wrong with probability alpha at most."""
    info = model.info
    try:
        x = smoothctl.read_image(io.BytesIO(image), info.input_shape)
    except smoothctl.UsageError as error:
        raise HTTPException(422, str(error)) from None
    (found,) = smoothctl.certify(model.classifier, x[None], sigma=info.sigma, noise=info.noise, n=N, alpha=ALPHA)
    answered = found.predict >= 0
    return {
        "class": info.class_names[found.predict] if answered else None, "abstains": not answered,
        "radius": found.radius, "p_lower": found.p_lower, "arithmetic": found.arithmetic,
    }  # fmt: skip
