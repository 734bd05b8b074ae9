/* Shared sweeps over one row. */
#include "kernels/cpu/row.h"

#include "kernels/cpu/vector_exp.h"
#include "kernels/vector.h"

VECTOR_CLONES
float row_max(const float *row, int64_t vocab) {
    f32x16 m[4];
    for (int k = 0; k < 4; k++)
        m[k] = f32x16_set(-INFINITY);
    int64_t i = 0;
    for (; i + 64 <= vocab; i += 64)
        for (int k = 0; k < 4; k++) {
            const f32x16 x = f32x16_load(row + i + 16 * k);
            m[k] = f32x16_select(x > m[k], x, m[k]);
        }
    float max = -INFINITY;
    for (int k = 0; k < 4; k++) {
        const float lane = f32x16_max(m[k]);
        max = lane > max ? lane : max;
    }
    for (; i < vocab; i++)
        max = row[i] > max ? row[i] : max;
    return max;
}

VECTOR_CLONES
void row_mask(float *row, int64_t vocab, float boundary, int64_t token, float mask) {
    const int64_t cut = token + 1 < vocab ? token + 1 : vocab;
    for (int64_t i = 0; i < cut; i++)
        row[i] = row[i] >= boundary ? row[i] : mask;
    for (int64_t i = cut; i < vocab; i++)
        row[i] = row[i] > boundary ? row[i] : mask;
}
