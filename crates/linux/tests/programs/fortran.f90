! Arrays, formatted and unformatted input and output, intrinsics, allocation, modules.
module shapes
  implicit none
  type :: point
    real(8) :: x, y
  end type point
contains
  pure real(8) function distance(a, b)
    type(point), intent(in) :: a, b
    distance = sqrt((a%x - b%x)**2 + (a%y - b%y)**2)
  end function distance
  recursive integer function ackermann(m, n) result(r)
    integer, intent(in) :: m, n
    if (m == 0) then
      r = n + 1
    else if (n == 0) then
      r = ackermann(m - 1, 1)
    else
      r = ackermann(m - 1, ackermann(m, n - 1))
    end if
  end function ackermann
end module shapes

program main
  use shapes
  implicit none
  integer, parameter :: n = 60
  real(8), allocatable :: a(:, :), b(:, :), c(:, :)
  real(8) :: total
  complex(8) :: z
  integer :: i, j, unit
  character(len=40) :: text
  integer(8) :: ticks, rate

  allocate (a(n, n), b(n, n), c(n, n))
  do j = 1, n
    do i = 1, n
      a(i, j) = 1d0 / (i + j)
      b(i, j) = mod(i * j, 7) - 3
    end do
  end do
  c = matmul(a, b)
  total = sum(c * transpose(a))
  print '(a,es23.15)', 'total ', total
  print *, 'largest', maxval(c), 'at', maxloc(c)
  write (*, '(5f10.4)') c(1:5, 1)
  print *, distance(point(0d0, 0d0), point(3d0, 4d0)), ackermann(2, 3)
  z = exp((0d0, 1d0))
  print *, z, abs(z), sin(1d0), tan(0.5), log10(1000d0), gamma(5d0), erf(0.5d0)
  print *, count(a > 0.1d0), any(b > 3), all(b < 4), dot_product(a(:, 1), b(:, 2)), norm2(a(1, :))
  print *, huge(1), tiny(1d0), epsilon(1.0), kind(1_8), ieor(5, 3), ishft(1, 10), popcnt(255)
  write (text, '(i0,1x,z8.8,1x,l1,1x,a)') -42, 48879, .true., trim('  x  ')
  print *, text, len_trim(text), index(text, '42'), adjustl('   left')
  read (text, *) i
  print *, i
  open (newunit=unit, status='scratch', form='unformatted', access='stream')
  write (unit) a
  rewind (unit)
  read (unit) b
  close (unit)
  print *, 'equal', all(a == b)
  open (newunit=unit, status='scratch')
  do i = 1, 100
    write (unit, '(i5,f12.5)') i, sqrt(real(i, 8))
  end do
  rewind (unit)
  total = 0
  do i = 1, 100
    read (unit, *) j, b(1, 1)
    total = total + j * b(1, 1)
  end do
  close (unit)
  print *, total
  call system_clock(ticks, rate)
  print *, ticks > 0, rate > 0
  do
    read (*, *, iostat=i) total
    if (i /= 0) exit
    print *, 'in', total
  end do
  error stop 21
end program main
