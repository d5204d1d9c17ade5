"""push: upload a model folder to the Hugging Face Hub or a private hub."""

from __future__ import annotations

import os
from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.errors import HFValidationError

from headcount.checkpoints.chosen_on import FILE as CHOSEN_ON
from headcount.checkpoints.folder import CONFIG, WEIGHT_PATTERNS, is_weight_file
from headcount.errors import CheckpointError

# Locks, states to resume training from, and hashes of texts, which may be private.
_LEFT_OUT = (".*", "unfinished/*", "training/*", "epochs/*", CHOSEN_ON)


def push(folder: str | os.PathLike[str], name: str, *, private: bool = False, endpoint: str | None = None) -> str:
    """Upload a model folder to a repository, which is created if missing. Returns the URL of the commit.

    Weights of an earlier model in the repository are deleted: transformers prefers one file to several.

    name: "user/name". endpoint: URL of the hub. By default that of huggingface_hub (HF_ENDPOINT).
    """
    path = Path(folder)
    if not (path / CONFIG).is_file():
        raise CheckpointError(f"{path} has no {CONFIG}. Give the folder of a model or of an export.")
    replaced = list(WEIGHT_PATTERNS) if any(map(is_weight_file, path.iterdir())) else None
    api = HfApi(endpoint=endpoint)
    try:
        api.create_repo(name, private=private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=name, folder_path=path, ignore_patterns=list(_LEFT_OUT), delete_patterns=replaced,
            commit_message="Upload by headcount",
        )  # fmt: skip
    except HFValidationError as error:
        raise CheckpointError(f"{name!r} is not a valid repository name: {error} Give user/name.") from error
    except Exception as error:  # the hub and the network fail in many ways
        reason = str(error).strip().splitlines()
        raise CheckpointError(
            f"{path} was not uploaded to {name}: {reason[0] if reason else type(error).__name__}. Log in with "
            "`hf auth login`, or set HF_TOKEN, and check the name."
        ) from error
    return str(commit.commit_url)
