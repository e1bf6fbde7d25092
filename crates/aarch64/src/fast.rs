//! Fast paths of SVE instructions, for code that is generated at run time.
//!
//! A fast path does what [`Inst::exec`] does, except that it leaves no words in the dynamic stream and does not count subnormal
//! numbers. It handles what is usual itself and leaves the rest to [`Inst::exec`]: accesses to pages whose translation is cached
//! ([`memory`]), sums of numbers ([`sum`]), and 32- and 64-bit elements on hosts with AVX-512 ([`avx512`]).

#[cfg(target_arch = "x86_64")]
mod avx512;
mod memory;
mod sum;

use fxscope_guestmem::Memory;

use crate::cpu::Cpu;
use crate::table::Inst;

/// Executes an instruction; returns whether it has stopped ([`crate::Stop`]). The host must have the features that the function is
/// compiled for, which is the case if [`find`] or [`find_float`] has returned it.
pub type FastPath = unsafe extern "C" fn(&mut Cpu, &mut Memory, &Inst) -> bool;

/// Returns the fast path of the instruction `word` whose row in the table is `name`, for vectors of `vl` bytes, on this host.
#[must_use]
pub fn find(name: &str, word: u32, vl: usize) -> Option<FastPath> {
    memory::find(name, word, vl).or_else(|| wide(name, word, vl))
}

/// The same for an instruction that computes with floating-point numbers. It may be used only while results are rounded to nearest,
/// subnormal numbers are not flushed and FPSR.IXC is set.
#[must_use]
pub fn find_float(name: &str, word: u32) -> Option<FastPath> {
    sum::find(name, word).or_else(|| wide_float(name, word))
}

#[cfg(target_arch = "x86_64")]
fn wide(name: &str, word: u32, _vl: usize) -> Option<FastPath> {
    if avx512::is_on_host() { avx512::find(name, word) } else { None }
}

#[cfg(target_arch = "x86_64")]
fn wide_float(name: &str, word: u32) -> Option<FastPath> {
    if avx512::is_on_host() { avx512::find_float(name, word) } else { None }
}

#[cfg(not(target_arch = "x86_64"))]
fn wide(_: &str, _: u32, _: usize) -> Option<FastPath> {
    None
}

#[cfg(not(target_arch = "x86_64"))]
fn wide_float(_: &str, _: u32) -> Option<FastPath> {
    None
}

/// Leaves an instruction to its executing function.
#[cold]
#[inline(never)]
fn interpret(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> bool {
    (i.exec)(cpu, mem, i).is_err()
}
