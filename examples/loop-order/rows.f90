! Scales the columns of a matrix by a vector. The inner loop goes along a row, whose elements lie a column apart in Fortran.
! -DCURED has the loops in the other order.
program rows
    implicit none
    integer, parameter :: m = 40, n = 32000
    real(8), allocatable :: a(:, :), x(:)
    integer :: i, j
    allocate (a(m, n), x(n))
    a = 1
    x = [(1 + mod(j, 2), j = 1, n)]
    call fxscope_begin('scale')
#ifdef CURED
        do j = 1, n
            do i = 1, m
                a(i, j) = a(i, j)*x(j)
            end do
        end do
#else
        do i = 1, m
            do j = 1, n
                a(i, j) = a(i, j)*x(j)
            end do
        end do
#endif
    call fxscope_end('scale')
    print '(a, f0.1)', 'mean ', sum(a)/m/n
end program
