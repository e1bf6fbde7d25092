! Lets concentrations decay until they are far below what double precision holds as normal numbers. -DCURED sets what is too small to
! matter to 0.
program decay
    implicit none
    integer, parameter :: n = 1024
    real(8) :: c(n)
    integer :: i, step
    c = [(1d-300*i, i = 1, n)]
    call fxscope_begin('decay')
    do step = 1, 200
        do i = 1, n
            c(i) = 0.9d0*c(i) + 1d-4*c(i)
#ifdef CURED
            if (c(i) < 1d-290) c(i) = 0
#endif
        end do
    end do
    call fxscope_end('decay')
    print '(a, l1)', 'decayed ', all(c < 1d-300)
end program
