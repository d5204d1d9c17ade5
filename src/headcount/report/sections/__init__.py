"""One file per question of the report; each exports SECTION."""
