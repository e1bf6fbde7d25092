! For Fortran programs that are measured with fxscope: marks of regions, and sectors of the caches.
!
! Marks: what is counted between the two calls is a region of that name in reports.
!
!     call fxscope_begin("solver")
!     ...
!     call fxscope_end("solver")
!
! Compile this file with the program, without link-time optimisation. fxscope recognises the calls by their names;
! elsewhere they do nothing and cost a call and a return each (Fortran has no way to write the single instruction that
! fxscope.h uses in C).
!
! Sectors, as fxscope.h describes them; compile fxscope_sector.c with the program, too:
!
!     use fxscope_sectors
!     real(real64), target :: b(n)
!     real(real64), pointer :: reused(:)
!     integer :: is_set
!     is_set = fxscope_sector_l2_ways(4, 10)
!     call fxscope_sector_assign(b, 1, reused)
!     ...
!     call fxscope_sector_restore()
module fxscope_sectors
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_loc, c_ptr
  use, intrinsic :: iso_fortran_env, only: real32, real64
  implicit none
  private
  public :: fxscope_sector_l1_ways, fxscope_sector_l2_ways, fxscope_sector_restore, fxscope_sector_pointer, fxscope_sector_assign
  public :: real32, real64

  interface
    integer(c_int) function fxscope_sector_l1_ways(ways0, ways1, ways2, ways3) bind(c)
      import :: c_int
      integer(c_int), value :: ways0, ways1, ways2, ways3
    end function fxscope_sector_l1_ways

    integer(c_int) function fxscope_sector_l2_ways(ways0, ways1) bind(c)
      import :: c_int
      integer(c_int), value :: ways0, ways1
    end function fxscope_sector_l2_ways

    subroutine fxscope_sector_restore() bind(c)
    end subroutine fxscope_sector_restore

    ! The same data through an address whose accesses belong to a sector.
    type(c_ptr) function fxscope_sector_pointer(address, sector) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
      integer(c_int), value :: sector
    end function fxscope_sector_pointer
  end interface

  ! Lets a pointer refer to a contiguous array; accesses through the pointer belong to a sector.
  interface fxscope_sector_assign
    module procedure assign_real64_1, assign_real64_2, assign_real64_3
    module procedure assign_real32_1, assign_real32_2, assign_real32_3
  end interface fxscope_sector_assign

contains

  subroutine assign_real64_1(array, sector, assigned)
    real(real64), target, contiguous, intent(in) :: array(:)
    integer, intent(in) :: sector
    real(real64), pointer, intent(out) :: assigned(:)
    call c_f_pointer(fxscope_sector_pointer(c_loc(array), int(sector, c_int)), assigned, shape(array))
  end subroutine assign_real64_1

  subroutine assign_real64_2(array, sector, assigned)
    real(real64), target, contiguous, intent(in) :: array(:, :)
    integer, intent(in) :: sector
    real(real64), pointer, intent(out) :: assigned(:, :)
    call c_f_pointer(fxscope_sector_pointer(c_loc(array), int(sector, c_int)), assigned, shape(array))
  end subroutine assign_real64_2

  subroutine assign_real64_3(array, sector, assigned)
    real(real64), target, contiguous, intent(in) :: array(:, :, :)
    integer, intent(in) :: sector
    real(real64), pointer, intent(out) :: assigned(:, :, :)
    call c_f_pointer(fxscope_sector_pointer(c_loc(array), int(sector, c_int)), assigned, shape(array))
  end subroutine assign_real64_3

  subroutine assign_real32_1(array, sector, assigned)
    real(real32), target, contiguous, intent(in) :: array(:)
    integer, intent(in) :: sector
    real(real32), pointer, intent(out) :: assigned(:)
    call c_f_pointer(fxscope_sector_pointer(c_loc(array), int(sector, c_int)), assigned, shape(array))
  end subroutine assign_real32_1

  subroutine assign_real32_2(array, sector, assigned)
    real(real32), target, contiguous, intent(in) :: array(:, :)
    integer, intent(in) :: sector
    real(real32), pointer, intent(out) :: assigned(:, :)
    call c_f_pointer(fxscope_sector_pointer(c_loc(array), int(sector, c_int)), assigned, shape(array))
  end subroutine assign_real32_2

  subroutine assign_real32_3(array, sector, assigned)
    real(real32), target, contiguous, intent(in) :: array(:, :, :)
    integer, intent(in) :: sector
    real(real32), pointer, intent(out) :: assigned(:, :, :)
    call c_f_pointer(fxscope_sector_pointer(c_loc(array), int(sector, c_int)), assigned, shape(array))
  end subroutine assign_real32_3
end module fxscope_sectors

subroutine fxscope_begin(name)
  implicit none
  character(len=*), intent(in) :: name
end subroutine fxscope_begin

subroutine fxscope_end(name)
  implicit none
  character(len=*), intent(in) :: name
end subroutine fxscope_end
