! Fortran with its run-time library: formats, complex numbers, allocation, files, intrinsics.
program fortran
    implicit none
    integer, parameter :: dp = kind(1d0)
    complex(dp), allocatable :: z(:)
    real(dp), allocatable :: a(:, :), b(:, :)
    integer :: i, n, seed(64), unit
    character(20) :: line
    n = 100
    allocate (a(n, n), b(n, n), z(8))
    a = reshape([(sin(real(i, dp)), i = 1, n * n)], [n, n])
    b = matmul(transpose(a), a)
    print '(a, 3es24.16)', 'matrix', b(1, 1), sum(b), maxval(abs(b))
    z = [(exp(cmplx(0, i, dp)), i = 1, 8)]
    print '(a, 2f20.15)', 'complex', product(z)
    seed = 42
    call random_seed(put=seed)
    open (newunit=unit, file='fortran.txt')
    do i = 1, 5
        write (unit, '(i4, f12.6, 1x, a)') i, sqrt(real(i, dp)), repeat('*', i)
    end do
    rewind (unit)
    do i = 1, 5
        read (unit, '(a)') line
        print *, trim(line)
    end do
    close (unit)
    print *, huge(i), tiny(1d0), epsilon(1d0), gamma(4.5d0), bessel_j0(1d0), erf(0.5d0)
end program fortran
