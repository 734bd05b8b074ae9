# How often each Gumbel noise exceeds a value, against the true tail. Data: noise.tsv.
HERE = ARG0[1:strlen(ARG0) - strlen("noise_tail.gp")]
ARGUMENTS = ARGC; DATA = ARG1; OUT = ARG2; WANT = ARG3; FOOTER = ARG4
load HERE."common.gp"
HEAD = "Tail of the Gumbel noise"
free(column_name) = 1
eval start(980, 620)
SUBTITLE = "share of draws whose noise is at least g, over all words that the variant can draw"
VARIANTS = ""
note(x) = (VARIANTS = add(VARIANTS, strcol("variant")), 0)
stats DATA using (note(0)) nooutput
NV = words(VARIANTS)
true_tail(g) = (q_ = exp(-g), g > 8 ? q_ - q_ * q_ / 2 : 1 - exp(-q_))
set logscale y
set xrange [-4:40]; set yrange [1e-17:3]
set format y "1e%T"
set ytics 1e-18, 100
set xlabel "noise g (logits)"; set ylabel "P(noise >= g)"
NOTES = "mark: the greatest noise that a variant has; a token further behind than that is never drawn by it"
eval frame
set key at screen 0.98, 0.885 right top horizontal samplen 3
set tmargin at screen 0.83; set bmargin at screen 0.17; set lmargin at screen 0.1
set samples 400
set output OUT
plot true_tail(x) with lines lw 5 lc rgb "#bbbbbb" title "true: 1 - exp(-exp(-g))", \
    for [v = 1:NV] DATA using (strcol("variant") eq word(VARIANTS, v) ? number(strcol("noise")) : NaN): \
        (number(strcol("tail"))) with lines lw 1.7 lc rgb color_of(word(VARIANTS, v), v) \
        dt v title word(VARIANTS, v), \
    for [v = 1:NV] DATA using (strcol("variant") eq word(VARIANTS, v) && strcol("greatest") eq "1" ? \
        number(strcol("noise")) : NaN):(number(strcol("tail"))) with points \
        pt point_of(word(VARIANTS, v), v) lc rgb color_of(word(VARIANTS, v), v) notitle
