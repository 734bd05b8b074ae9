# Latency against vocabulary, a panel for each batch.
HERE = ARG0[1:strlen(ARG0) - strlen("latency.gp")]
ARGUMENTS = ARGC; DATA = ARG1; OUT = ARG2; WANT = ARG3; FOOTER = ARG4
load HERE."common.gp"
AXIS = "vocab"; PANEL = "batch"; PANEL_TEXT = "batch"
AXIS_TEXT = "vocabulary (tokens)"
HEAD = "Latency against vocabulary"
load HERE."lines.gp"
