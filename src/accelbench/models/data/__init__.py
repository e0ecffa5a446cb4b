"""Real inputs: images, sound and text from files, decoded and preprocessed. Decoders on use."""

from __future__ import annotations

from accelbench.models.data.folder import Folder, look
from accelbench.models.data.reading import DataLoader, Feed, create_dataloader
from accelbench.models.data.rows import ready_decoders

__all__ = ["DataLoader", "Feed", "Folder", "create_dataloader", "look", "ready_decoders"]
