# Latency against batch, a panel for each vocabulary.
HERE = ARG0[1:strlen(ARG0) - strlen("batch.gp")]
ARGUMENTS = ARGC; DATA = ARG1; OUT = ARG2; WANT = ARG3; FOOTER = ARG4
load HERE."common.gp"
AXIS = "batch"; PANEL = "vocab"; PANEL_TEXT = "vocabulary"
AXIS_TEXT = "batch (rows)"
HEAD = "Latency against batch"
load HERE."lines.gp"
