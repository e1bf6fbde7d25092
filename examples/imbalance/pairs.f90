! Adds up an energy of all pairs of particles: the later the particle, the more partners come before it. Each thread has a block of
! particles. -DCURED gives the threads short blocks by turns.
program pairs
    implicit none
    integer, parameter :: n = 1440
    real(8) :: x(n), energy(n), e, d
    integer :: i, j
    !$omp parallel do
    do j = 1, n
        x(j) = 1d-3*j
    end do
    call fxscope_begin('pairs')
#ifdef CURED
    !$omp parallel do private(i, e, d) schedule(static, 8)
#else
    !$omp parallel do private(i, e, d)
#endif
    do j = 1, n
        e = 0
        do i = 1, j
            d = (x(i) - x(j))**2
            e = e + d*(1 - d*(0.5d0 - d*(0.25d0 - 0.125d0*d)))
        end do
        energy(j) = e
    end do
    call fxscope_end('pairs')
    print '(a, es10.3)', 'energy ', sum(energy)
end program
