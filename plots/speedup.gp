# How many times faster one kernel is than another, vocabulary by batch. Keys: base=, new=.
HERE = ARG0[1:strlen(ARG0) - strlen("speedup.gp")]
ARGUMENTS = ARGC; DATA = ARG1; OUT = ARG2; WANT = ARG3; FOOTER = ARG4
load HERE."common.gp"
HEAD = ""
free(column_name) = has("vocab batch", column_name)
eval fix
BASE = wanted("base", "stock"); NEW = wanted("new", "exact")
eval start(980, 620)
VOCABS = ""; BATCHES = ""
ours(x) = fits(0) && (strcol("kernel") eq BASE || strcol("kernel") eq NEW)
note(x) = ours(0) ? (VOCABS = add(VOCABS, strcol("vocab")), BATCHES = add(BATCHES, strcol("batch")), 0) : 0
stats DATA using (note(0)) nooutput
if (VOCABS eq "") print sprintf("%s: no cell of %s or %s fits '%s'", DATA, BASE, NEW, WANT); exit status 2
VOCABS = sorted(VOCABS); BATCHES = sorted(BATCHES)
NX = words(VOCABS); NY = words(BATCHES)
array TIME[2 * NX * NY]; array STATE[2 * NX * NY]; array INDEX[NX * NY + 1]
do for [i = 1:2 * NX * NY] { TIME[i] = NaN; STATE[i] = "-" }
# One entry past the end: gnuplot 5.4 falls over an array of one.
do for [i = 1:NX * NY + 1] { INDEX[i] = i }
put(i, ns, state) = STATE[i] ne "-" ? 0 : (STATE[i] = state, TIME[i] = state eq "" ? ns : NaN, 0)
fill(x) = ours(0) ? put((strcol("kernel") eq BASE ? 0 : NX * NY) + \
    (place(BATCHES, strcol("batch")) - 1) * NX + place(VOCABS, strcol("vocab")), \
    number(strcol("median_ns")), state_of(strcol("verdict"), strcol("median_ns"))) : 0
stats DATA using (fill(0)) nooutput
set datafile nocolumnheaders
HEAD = sprintf("Speed-up of %s over %s", NEW, BASE)
SUBTITLE = fixed(0)
NOTES = sprintf("time of %s / time of %s: above 1x %s is faster.  Grey: no ratio, with each kernel's reason", BASE, NEW, NEW)
gain(i) = TIME[i] / TIME[NX * NY + i]
short(s) = s eq "" ? "timed" : (text_ = state_text(s), s eq "0" ? "zero" : text_[3:*])
inside(i) = i <= NX * NY
has_gain(i) = inside(i) && STATE[i] eq "" && STATE[NX * NY + i] eq ""
eval frame
# Blue: faster, orange: slower, the same to either side of 1; pale enough for black text.
widest = 1
do for [i = 1:NX * NY] { if (has_gain(i)) {
    v = abs(log(gain(i)) / log(2)); if (v > widest) { widest = v } } }
widest = widest > 6 ? 6 : ceil(widest)
set palette defined (-3 "#d55e00", -1 "#f2b98c", 0 "#ffffff", 1 "#a6cde6", 3 "#3b93c9")
set cbrange [-widest:widest]
set cbtics ()
do for [v = 0:widest] {
    set cbtics add (sprintf("%dx", 2 ** v) v)
    if (v) { set cbtics add (sprintf("1/%dx", 2 ** v) -v) } }
set xrange [0.5:NX + 0.5]; set yrange [0.5:NY + 0.5]
set xtics (); set ytics ()
do for [x = 1:NX] { set xtics add (word(VOCABS, x) x) }
do for [y = 1:NY] { set ytics add (word(BATCHES, y) y) }
unset grid
set xlabel "vocabulary (tokens)"; set ylabel "batch (rows)"
set tmargin at screen 0.88; set bmargin at screen 0.17
set lmargin at screen 0.085; set rmargin at screen 0.87
set style fill solid 1 border rgb "#ffffff"
is_grey(i) = inside(i) && !has_gain(i)
col(i) = 1 + (i - 1) % NX
row(i) = 1 + (i - 1) / NX
clip(v) = v < -widest ? -widest : v > widest ? widest : v
set output OUT
plot INDEX using (col(int($1))):(row(int($1))):(0.5):(0.5):(has_gain(int($1)) ? \
        clip(log(gain(int($1))) / log(2)) : NaN) with boxxyerror fc palette, \
    INDEX using (!is_grey(int($1)) ? NaN : col(int($1))):(row(int($1))):(0.5):(0.5) \
        with boxxyerror fc rgb "#dddddd", \
    INDEX using (has_gain(int($1)) ? col(int($1)) : NaN):(row(int($1))): \
        (has_gain(int($1)) ? sprintf("%.3gx", gain(int($1))) : "") with labels font ",13", \
    INDEX using (!is_grey(int($1)) ? NaN : col(int($1))):(row(int($1)) + 0.1): \
        (is_grey(int($1)) ? sprintf("%s %s", BASE, short(STATE[int($1)])) : "") with labels font ",9", \
    INDEX using (!is_grey(int($1)) ? NaN : col(int($1))):(row(int($1)) - 0.1): \
        (is_grey(int($1)) ? sprintf("%s %s", NEW, short(STATE[NX * NY + int($1)])) : "") with labels font ",9"
