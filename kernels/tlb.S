// double tlb_work(const double *place, uint64_t rounds): 16 loads and 16 additions per round, into 16 sums; rounds >= 1.

        .globl  tlb_work
        .type   tlb_work, %function
        .p2align 6
tlb_work:
        .irp    n, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        movi    v\n\().2d, #0
        .endr
1:
        .irp    n, 0,1,2,3,4,5,6,7
        ldr     q\n, [x0, #16 * \n]
        .endr
        fadd    v16.2d, v16.2d, v0.2d
        fadd    v17.2d, v17.2d, v1.2d
        fadd    v18.2d, v18.2d, v2.2d
        fadd    v19.2d, v19.2d, v3.2d
        fadd    v20.2d, v20.2d, v4.2d
        fadd    v21.2d, v21.2d, v5.2d
        fadd    v22.2d, v22.2d, v6.2d
        fadd    v23.2d, v23.2d, v7.2d
        .irp    n, 0,1,2,3,4,5,6,7
        ldr     q\n, [x0, #128 + 16 * \n]
        .endr
        fadd    v24.2d, v24.2d, v0.2d
        fadd    v25.2d, v25.2d, v1.2d
        fadd    v26.2d, v26.2d, v2.2d
        fadd    v27.2d, v27.2d, v3.2d
        fadd    v28.2d, v28.2d, v4.2d
        fadd    v29.2d, v29.2d, v5.2d
        fadd    v30.2d, v30.2d, v6.2d
        fadd    v31.2d, v31.2d, v7.2d
        subs    x1, x1, #1
        b.ne    1b
        fadd    v16.2d, v16.2d, v24.2d
        fadd    v17.2d, v17.2d, v25.2d
        fadd    v18.2d, v18.2d, v26.2d
        fadd    v19.2d, v19.2d, v27.2d
        fadd    v20.2d, v20.2d, v28.2d
        fadd    v21.2d, v21.2d, v29.2d
        fadd    v22.2d, v22.2d, v30.2d
        fadd    v23.2d, v23.2d, v31.2d
        fadd    v16.2d, v16.2d, v20.2d
        fadd    v17.2d, v17.2d, v21.2d
        fadd    v18.2d, v18.2d, v22.2d
        fadd    v19.2d, v19.2d, v23.2d
        fadd    v16.2d, v16.2d, v18.2d
        fadd    v17.2d, v17.2d, v19.2d
        fadd    v16.2d, v16.2d, v17.2d
        faddp   d0, v16.2d
        ret
        .size   tlb_work, .-tlb_work
