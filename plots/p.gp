# Latency against p, a panel for each batch.
HERE = ARG0[1:strlen(ARG0) - strlen("p.gp")]
ARGUMENTS = ARGC; DATA = ARG1; OUT = ARG2; WANT = ARG3; FOOTER = ARG4
load HERE."common.gp"
AXIS = "p"; PANEL = "batch"; PANEL_TEXT = "batch"
AXIS_TEXT = "p (probability mass to keep)"
HEAD = "Latency against p"
load HERE."lines.gp"
