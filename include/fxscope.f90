! Marks parts of a Fortran program for fxscope: what is counted between the two calls is a region of that name in reports.
!
!     call fxscope_begin("solver")
!     ...
!     call fxscope_end("solver")
!
! Compile this file with the program, without link-time optimisation. fxscope recognises the calls by their names;
! elsewhere they do nothing and cost a call and a return each (Fortran has no way to write the single instruction that
! fxscope.h uses in C).
subroutine fxscope_begin(name)
  implicit none
  character(len=*), intent(in) :: name
end subroutine fxscope_begin

subroutine fxscope_end(name)
  implicit none
  character(len=*), intent(in) :: name
end subroutine fxscope_end
