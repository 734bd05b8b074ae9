# One cell over time. Data: history.tsv (plots/README.md says its columns).
HERE = ARG0[1:strlen(ARG0) - strlen("history.gp")]
ARGUMENTS = ARGC; DATA = ARG1; OUT = ARG2; WANT = ARG3; FOOTER = ARG4; GIVEN = ARG4
load HERE."common.gp"
HEAD = "History of a cell"
free(column_name) = 1
eval start(980, 620)
# The one key; a name of Google Benchmark may have blanks in it.
SUBTITLE = WANT[1:5] eq "cell=" ? WANT[6:*] : ""
rows = 0; least = 1e300; most = 0; EPOCHS = ""; refused = 0; UNIT = ""; DEVICE = ""; FROM = ""; TO = ""
amount(name) = number(strcol(name)) * (UNIT eq "ns" ? 0.001 : 1)
took(x) = strcol("state") eq "ok" ? amount("median_ns") : NaN
low(x) = amount("ci_low_ns")
high(x) = amount("ci_high_ns")
note(x) = (rows = rows + 1, EPOCHS = add(EPOCHS, strcol("epoch")), UNIT = strcol("unit"), \
    DEVICE = strcol("device"), FROM = rows == 1 ? strcol("date") : FROM, TO = strcol("date"), \
    (took(0) > 0 && took(0) < least ? (least = took(0), 0) : 0), \
    (took(0) > most ? (most = took(0), 0) : 0), \
    (strcol("state") eq "ok" ? 0 : (refused = refused + 1, 0)))
stats DATA using (note(0)) nooutput
ONE_DAY = FROM[1:10] eq TO[1:10]
if (GIVEN eq "") FOOTER = DEVICE.", ".FROM[1:10].(ONE_DAY ? "" : " to ".TO[1:10])
if (most == 0) least = 1; most = 2
array DATE[rows]; array EPOCH[rows]; array CHANGE[rows]
fill(x) = (i_ = int(column(0)) + 1, DATE[i_] = strcol("date"), EPOCH[i_] = strcol("epoch"), \
    CHANGE[i_] = strcol("change") eq "1" ? sprintf("%s %+.1f%%", strcol("kind"), number(strcol("step"))) : "", 0)
stats DATA using (fill(0)) nooutput
span = most - least > 0.02 * most ? most - least : 0.02 * most
set xrange [0:rows + 1]; set yrange [least - span * 0.35:most + span * 0.35]
every_ = 1 + (rows - 1) / 8
set xtics ()
n = 500; changes = 0; epochs = 0
do for [i = 1:rows] {
    if ((i - 1) % every_ == 0) { d = DATE[i]; lab_ = ONE_DAY ? d[12:19] : d[1:10]; set xtics add (lab_ i) }
    if (CHANGE[i] ne "") {
        set arrow n from first i - 0.5, graph 0 to first i - 0.5, graph 0.93 nohead lc rgb "#D55E00" lw 2
        set label n CHANGE[i] at first i - 0.5, graph 0.95 - 0.05 * (changes % 2) offset 0.5, 0 \
            textcolor rgb "#D55E00" font ",10"
        n = n + 1; changes = changes + 1 }
    if (i == 1 || EPOCH[i] ne EPOCH[i - (i > 1)]) {
        set arrow n from first i - 0.5, graph 0 to first i - 0.5, graph 1 nohead lc rgb "#999999" dt 3
        set label n "epoch ".EPOCH[i] at first i - 0.5, graph 0.03 + 0.045 * (epochs % 3) offset 0.5, 0 \
            textcolor rgb "#666666" font ",10"
        n = n + 1; epochs = epochs + 1 }
}
set ylabel (UNIT eq "ns" ? "time per call (µs)" : "rate (per second)"); set xlabel "run, oldest first".(ONE_DAY ? " (UTC)" : "")
if (UNIT ne "ns") set format y "%.3s%c"
NOTES = "dot: median of a run; bar: its 95 % interval; lines end at an epoch (another machine, driver, build or profile)"
if (refused) NOTES = NOTES.sprintf(";  X: %d runs without a time", refused)
eval frame
set tmargin at screen 0.88; set bmargin at screen 0.17; set lmargin at screen (UNIT eq "ns" ? 0.1 : 0.13)
here(x) = int(column(0)) + 1
in(e) = strcol("epoch") eq word(EPOCHS, e)
set output OUT
plot for [e = 1:words(EPOCHS)] DATA using (here(0)):(in(e) ? took(0) : NaN) with lines lc rgb "#56B4E9", \
    DATA using (here(0)):(took(0)):(low(0)):(high(0)) with yerrorbars pt 7 ps 0.6 lc rgb "#0072B2", \
    DATA using (strcol("state") eq "ok" ? NaN : here(0)):(least - span * 0.2):("X") with labels \
        textcolor rgb "#D55E00"
