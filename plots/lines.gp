# Latency as lines, one a kernel, in panels. The caller sets AXIS, PANEL (column names or "" for
# none), AXIS_TEXT and HEAD, after common.gp.
#
# Keys of the third argument: kind, family, l2, launch, p, temperature, vocab, batch. What is not
# given is taken from the first row of the file that fits.

# Pass 1: what is held fixed.
free(column_name) = AXIS eq column_name || PANEL eq column_name
eval fix

# Pass 2: kernels, places on the axis, panels.
KERNELS = ""; XS = ""; PANELS = ""; LABELS = " "
panel_word(x) = PANEL eq "" ? "all" : strcol(PANEL)
note(x) = fits(0) ? (KERNELS = add(KERNELS, strcol("kernel")), XS = add(XS, strcol(AXIS)), \
    LABELS = AXIS eq "p" ? LABELS.strcol("p")."=".strcol("p_text")." " : "", \
    PANELS = add(PANELS, panel_word(0)), 0) : 0
stats DATA using (note(0)) nooutput
XS = sorted(XS)
# Values of p stand side by side, in order: 1-2^-20 and 1-2^-10 would be one place on any scale.
label_of(x) = AXIS eq "p" ? value_of(LABELS, word(XS, x), "") : word(XS, x)
at_x(x) = AXIS eq "p" ? x : number(word(XS, x))
if (PANEL ne "") PANELS = sorted(PANELS)
# More panels than a page holds: nine, evenly chosen.
LEFT_OUT = words(PANELS) - 9
if (LEFT_OUT > 0) {
    chosen = ""
    do for [i = 0:8] { chosen = add(chosen, word(PANELS, 1 + i * (words(PANELS) - 1) / 8)) }
    PANELS = chosen
}
NK = words(KERNELS); NX = words(XS); NP = words(PANELS)

# Pass 3: the figures. A place that no row fills stays "-".
array MEDIAN[NK * NX * NP]; array LOW[NK * NX * NP]; array HIGH[NK * NX * NP]
array STATE[NK * NX * NP]
do for [i = 1:NK * NX * NP] { MEDIAN[i] = NaN; LOW[i] = NaN; HIGH[i] = NaN; STATE[i] = "-" }
at(panel, kernel, x) = ((panel - 1) * NK + kernel - 1) * NX + x
least = NaN; most = NaN
widen(value) = value > 0 ? (least = least <= value ? least : value, \
    most = most >= value ? most : value, 0) : 0
put(i, m, low, high, state) = STATE[i] ne "-" ? 0 : (STATE[i] = state, state ne "" ? 0 : \
    (MEDIAN[i] = m, LOW[i] = low > 0 ? low : m, HIGH[i] = high > 0 ? high : m, widen(m), \
     widen(LOW[i]), widen(HIGH[i])))
fill(x) = fits(0) && has(PANELS, panel_word(0)) ? put(at(place(PANELS, panel_word(0)), place(KERNELS, strcol("kernel")), \
        place(XS, strcol(AXIS))), number(strcol("median_ns")) / 1000, \
    number(strcol("ci_low_ns")) / 1000, number(strcol("ci_high_ns")) / 1000, \
    state_of(strcol("verdict"), strcol("median_ns"))) : 0
stats DATA using (fill(0)) nooutput
anything = least > 0
if (!anything) least = 1; most = 10

# A place that the run leaves out altogether has one grey dash.
nobody(panel, x) = (sum [k_ = 1:NK] (STATE[at(panel, k_, x)] eq "-")) == NK
# Rows of letters under the lines, one a kernel that has any.
MARKED = ""; SEEN = ""
do for [i = 1:NP] { do for [k = 1:NK] { do for [x = 1:NX] {
    s = STATE[at(i, k, x)]
    if (s eq "-" && nobody(i, x)) { SEEN = add(SEEN, "-") }
    if (s ne "" && !(s eq "-" && nobody(i, x))) { MARKED = add(MARKED, word(KERNELS, k)); SEEN = add(SEEN, s) }
} } }
span = most > 1.2 * least ? most / least : 1.2
share = 0.05 * words(MARKED) + (has(SEEN, "-") ? 0.1 : 0.05)
bottom = least / span ** (share / (1.0 - share))
top = most * span ** 0.08

SUBTITLE = fixed(0)
NOTES = "line: median; band: its 95 % interval"
do for [i = 1:words(STATES)] { if (has(SEEN, word(STATES, i))) {
    NOTES = NOTES.";  ".state_text(word(STATES, i)) } }
if (LEFT_OUT > 0) NOTES = NOTES.sprintf(";  %d panels not shown", LEFT_OUT)

COLS = NP > 4 ? 3 : NP > 1 ? 2 : 1
ROWS = (NP + COLS - 1) / COLS
set datafile nocolumnheaders
array INDEX[NX]
do for [x = 1:NX] { INDEX[x] = x }
eval start(980, ROWS == 1 ? 620 : ROWS == 2 ? 800 : 980)
set output OUT
set multiplot
eval frame
# The legend: a line with the kernel's mark and its name.
legend_x = 0.02
do for [k = 1:NK] {
    name = word(KERNELS, k)
    set arrow 100 + k from screen legend_x, 0.885 to screen legend_x + 0.03, 0.885 nohead \
        lc rgb color_of(name, k) lw 2 dt dash_of(name, k)
    set label 100 + k name at screen legend_x + 0.035, 0.885
    set label 200 + k "" at screen legend_x + 0.015, 0.885 \
        point pt point_of(name, k) ps 0.8 lc rgb color_of(name, k)
    legend_x = legend_x + 0.05 + 0.0092 * strlen(name)
}
if (AXIS ne "p") set logscale x
set logscale y
set format y "%g"
# A short axis gets more than the powers of ten, which would leave it bare.
if (top / bottom < 60) {
    steps = top / bottom < 5 ? "1 1.2 1.5 2 2.5 3 4 5 6 8" : "1 2 5"
    set ytics ()
    do for [decade = floor(log10(bottom)):ceil(log10(top))] { do for [step in steps] {
        set ytics add (real(step) * 10.0 ** decade) } }
}
if (AXIS eq "p") set xrange [0.5:NX + 0.5]; else set xrange [at_x(1) / 1.15:at_x(NX) * 1.15]
set yrange [bottom:top]
# Labels turn when they would touch, and one that would cover its neighbour even so is left out.
pixels = 800.0 / COLS
gap(x, y) = pixels * (AXIS eq "p" ? (y - x) / real(NX) : \
    log(at_x(y) / at_x(x)) / log(1.33 * at_x(NX) / at_x(1)))
turned = 0
do for [x = 2:NX] { if (gap(x - 1, x) < 4.0 * (strlen(label_of(x - 1)) + strlen(label_of(x))) + 6) {
    turned = 1 } }
set xtics ()
labelled = 0
do for [x = 1:NX] {
    text = label_of(x)
    if (labelled > 0) { if (gap(labelled, x) < 16) { text = "" } }
    if (text ne "") { labelled = x }
    set xtics add (text at_x(x))
}
if (turned) set xtics rotate by -35
do for [i = 1:NP] {
    col = (i - 1) % COLS; row = (i - 1) / COLS
    set lmargin at screen 0.085 + col * 0.915 / COLS
    set rmargin at screen 0.085 + (col + 1) * 0.915 / COLS - 0.09 / COLS - 0.005
    set tmargin at screen 0.83 - row * 0.76 / ROWS
    set bmargin at screen 0.83 - (row + 1) * 0.76 / ROWS + (turned ? 0.12 : 0.085)
    set title (PANEL eq "" ? "" : PANEL_TEXT." ".word(PANELS, i)) offset 0, -0.6
    set ylabel (col == 0 ? "time per call (µs)" : "") offset 1, 0
    set xlabel (row == ROWS - 1 || i + COLS > NP ? AXIS_TEXT : "") offset 0, (turned ? -0.2 : 0.4)
    if (i == 2) { unset label 1; unset label 2; unset label 3; unset label 4
        do for [k = 1:NK] { unset label 100 + k; unset label 200 + k; unset arrow 100 + k } }
    n = 1000
    do for [k = 1:NK] { do for [x = 1:NX] {
        s = STATE[at(i, k, x)]
        shown = s eq "" || (nobody(i, x) && k > 1) ? " " : s
        set label n shown at first at_x(x), \
            graph nobody(i, x) ? 0.03 : 0.03 + 0.05 * (place(MARKED, word(KERNELS, k)) - 1) \
            center font (nobody(i, x) ? ",15" : ",9") textcolor rgb nobody(i, x) ? 0x777777 : color_of(word(KERNELS, k), k)
        n = n + 1
    } }
    plot for [k = 1:NK] INDEX using \
            (at_x(int($1))):(LOW[at(i, k, int($1))]):(HIGH[at(i, k, int($1))]) \
            with filledcurves fs transparent solid 0.25 noborder lc rgb color_of(word(KERNELS, k), k), \
        for [k = 1:NK] INDEX using (at_x(int($1))):(MEDIAN[at(i, k, int($1))]) \
            with linespoints lc rgb color_of(word(KERNELS, k), k) dt dash_of(word(KERNELS, k), k) \
            pt point_of(word(KERNELS, k), k) ps 0.7 lw 1.5
}
unset multiplot
