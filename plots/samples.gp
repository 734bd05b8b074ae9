# Every sample of some cells: two clocks show as two columns of dots. Data: samples.tsv.
HERE = ARG0[1:strlen(ARG0) - strlen("samples.gp")]
ARGUMENTS = ARGC; DATA = ARG1; OUT = ARG2; WANT = ARG3; FOOTER = ARG4
load HERE."common.gp"
HEAD = "Distribution of samples"
free(column_name) = 1
eval start(980, 620)
SUBTITLE = "each dot is one timed call, over the median of its draw; rows are kernel, batch x vocabulary"
CHOSEN = FAMILY.unit(L2 eq "" ? "NA" : L2, "L2 ").unit(LAUNCH eq "" ? "NA" : LAUNCH, "launch "). \
    unit(P eq "" ? "NA" : P, "p=")
if (CHOSEN ne "") HEAD = HEAD.": ".CHOSEN
LANES = ""; far = 0
note(x) = (LANES = add(LANES, strcol("lane")), 0)
stats DATA using (note(0)) nooutput
NL = words(LANES)
array NAME[NL]; array BEYOND[NL]; array COUNT[NL]; array UNIT[NL]
do for [l = 1:NL] { NAME[l] = ""; BEYOND[l] = 0; COUNT[l] = 0; UNIT[l] = "" }
LIMIT = real(wanted("limit", "1.25"))
tally(x) = (l_ = place(LANES, strcol("lane")), NAME[l_] = strcol("label"), \
    COUNT[l_] = COUNT[l_] + 1, UNIT[l_] = strcol("kernel"), \
    BEYOND[l_] = BEYOND[l_] + (number(strcol("relative")) > LIMIT), 0)
stats DATA using (tally(0)) nooutput
set xrange [2 - LIMIT > 0.75 ? 2 - LIMIT : 0.75:LIMIT]
set yrange [NL + 0.6:0.4]
set ytics ()
do for [l = 1:NL] { set ytics add (NAME[l] l) }
set tics font ",10"
set format x "%.2fx"
set xlabel "time of a sample / median of its draw"
NOTES = "within a lane from top to bottom in the order of time (blocks)"
eval frame
do for [l = 1:NL] {
    said = BEYOND[l] ? sprintf("%d of %d beyond", BEYOND[l], COUNT[l]) : sprintf("%d", COUNT[l])
    set label 10 + l said at graph 1.01, first l font ",9" }
set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead lc rgb "#000000" dt 2
set tmargin at screen 0.88; set bmargin at screen 0.17
set lmargin at screen 0.25; set rmargin at screen 0.88
set output OUT
plot for [l = 1:NL] DATA using (strcol("lane") eq word(LANES, l) ? number(strcol("relative")) : NaN): \
    (l - 0.38 + 0.76 * number(strcol("order"))) with points pt 7 ps 0.25 lc rgb color_of(UNIT[l], l)
