"""One file per figure; each exports FIGURE."""
