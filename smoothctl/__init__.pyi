"""The names that plugins and programs need; each is imported when it is first used."""

from .base.draws import Draws as Draws
from .base.errors import SmoothctlError as SmoothctlError
from .base.errors import UsageError as UsageError
from .hooks.datasets import ArrayImages as ArrayImages
from .hooks.datasets import Dataset as Dataset
from .hooks.datasets import LabelledImages as LabelledImages
from .hooks.methods import Batch as Batch
from .hooks.methods import Method as Method
from .hooks.networks import Architecture as Architecture
from .hooks.networks import Imported as Imported
from .hooks.networks import Importer as Importer
from .hooks.networks import ModelSpec as ModelSpec
from .hooks.networks import Trained as Trained
from .hooks.noises import Noise as Noise
from .hooks.recipes import Recipe as Recipe
from .hooks.specs import hookimpl as hookimpl
from .hooks.trackers import Event as Event
from .hooks.trackers import Tracker as Tracker
from .images.datasets import DatasetMissing as DatasetMissing
from .images.datasets import read_npz as read_npz
from .images.files import ImageFiles as ImageFiles
from .images.files import class_folders as class_folders
from .models.checkpoint import load_model as load_model
from .models.classifier import build_classifier as build_classifier
from .models.import_checkpoint import Assumptions as Assumptions
from .models.import_checkpoint import read_weights as read_weights
from .smoothing.certify import certify as certify
from .smoothing.predict import Prediction as Prediction
from .smoothing.predict import predict as predict
from .smoothing.rules import Certificate as Certificate
from .smoothing.smoothed import SmoothedClassifier as SmoothedClassifier
from .toolkit.attacks import AttackOptions as AttackOptions
from .toolkit.attacks import ascent_direction as ascent_direction
from .toolkit.attacks import attack_batch as attack_batch
from .toolkit.attacks import attacking as attacking
from .toolkit.attacks import soft_cross_entropy as soft_cross_entropy
from .toolkit.augmentation import random_crop as random_crop
from .toolkit.augmentation import random_flip as random_flip
from .toolkit.augmentation import random_resized_crop as random_resized_crop
from .toolkit.averaged_softmax import soft_vote as soft_vote

__version__: str
