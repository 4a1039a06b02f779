"""The vision transformer for small images of the CRT paper.

It is not timm's VisionTransformer: attention is scaled by the root of the whole width instead of
a head's, a GELU follows both linear layers of an MLP, query, key and value are layers of their
own, patches are cut by rows of pixels with channels last, and there is no layer norm but the
head's after the last block. timm's are ``timm/vit_...``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from smoothctl import Architecture, ModelSpec, UsageError, hookimpl

GRID, WIDTH, HIDDEN, LAYERS, HEADS = 8, 384, 1536, 7, 12


class Attention(nn.Module):
    """Self-attention of 12 heads over tokens [B,N,384]."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (layer(x).unflatten(2, (HEADS, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        heads = F.scaled_dot_product_attention(q, k, v, scale=WIDTH**-0.5)
        mixed: Tensor = self.o(heads.transpose(1, 2).flatten(2))
        return mixed


class Encoder(nn.Module):
    """A pre-norm block."""

    def __init__(self) -> None:
        super().__init__()
        self.la1 = nn.LayerNorm(WIDTH)
        self.msa = Attention()
        self.la2 = nn.LayerNorm(WIDTH)
        dropped = nn.Identity()  # holds the place of a dropout of 0, so that keys are those of the files
        self.mlp = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), dropped, nn.Linear(HIDDEN, WIDTH), nn.GELU())

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.msa(self.la1(x))
        deeper: Tensor = x + self.mlp(self.la2(x))
        return deeper


class ViT(nn.Module):
    """An 8x8 grid of patches and a class token through 7 blocks."""

    def __init__(self, channels: int, side: int, num_classes: int):
        super().__init__()
        self.patch = side // GRID
        self.cls_token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.pos_emb = nn.Parameter(torch.randn(1, GRID * GRID + 1, WIDTH))
        self.emb = nn.Linear(self.patch * self.patch * channels, WIDTH)
        self.enc = nn.Sequential(*(Encoder() for _ in range(LAYERS)))
        self.fc = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        grid = x.unflatten(3, (GRID, self.patch)).unflatten(2, (GRID, self.patch))
        words = grid.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)
        tokens = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), self.emb(words)], dim=1) + self.pos_emb
        logits: Tensor = self.fc(self.enc(tokens)[:, 0])
        return logits


def build(spec: ModelSpec) -> nn.Module:
    """12,470,026 parameters for 32x32 colour images and 10 classes. Sides must be equal, and multiples of 8."""
    channels, height, width = spec.input_shape
    if height != width or height % GRID:
        raise UsageError(f"vit cuts square images into 8x8 patches: sides must be multiples of 8, not {height}x{width}")
    return ViT(channels, height, spec.num_classes)


@hookimpl
def register_architectures() -> list[Architecture]:
    return [Architecture("vit", build, summary="ViT for small images (CRT paper; not timm's)", dataset="cifar10")]
