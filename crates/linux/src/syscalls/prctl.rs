//! `prctl(2)`: settings of a process and of its threads.

use rustix::io::Errno;

use super::{Args, Result, perf};
use crate::attributes::{LAST_CAPABILITY, capability};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::signal;
use crate::thread::{DEFAULT_SLACK_NS, NextVl, Thread};

/// `PR_SVE_VL_INHERIT`.
const SVE_VL_INHERIT: u64 = 1 << 17;

/// Options (Linux `prctl.h`).
mod option {
    pub const SET_PDEATHSIG: u64 = 1;
    pub const GET_PDEATHSIG: u64 = 2;
    pub const GET_DUMPABLE: u64 = 3;
    pub const SET_DUMPABLE: u64 = 4;
    pub const GET_KEEPCAPS: u64 = 7;
    pub const SET_KEEPCAPS: u64 = 8;
    pub const SET_NAME: u64 = 15;
    pub const GET_NAME: u64 = 16;
    pub const GET_SECCOMP: u64 = 21;
    pub const CAPBSET_READ: u64 = 23;
    pub const CAPBSET_DROP: u64 = 24;
    pub const GET_SECUREBITS: u64 = 27;
    pub const SET_TIMERSLACK: u64 = 29;
    pub const GET_TIMERSLACK: u64 = 30;
    pub const TASK_PERF_EVENTS_DISABLE: u64 = 31;
    pub const TASK_PERF_EVENTS_ENABLE: u64 = 32;
    pub const SET_CHILD_SUBREAPER: u64 = 36;
    pub const GET_CHILD_SUBREAPER: u64 = 37;
    pub const SET_NO_NEW_PRIVS: u64 = 38;
    pub const GET_NO_NEW_PRIVS: u64 = 39;
    pub const GET_TID_ADDRESS: u64 = 40;
    pub const SET_THP_DISABLE: u64 = 41;
    pub const GET_THP_DISABLE: u64 = 42;
    pub const CAP_AMBIENT: u64 = 47;
    pub const SVE_SET_VL: u64 = 50;
    pub const SVE_GET_VL: u64 = 51;
}

/// Returns an argument that must be 0 or 1.
fn flag(argument: u64) -> std::result::Result<bool, Errno> {
    match argument {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn prctl(k: &mut Kernel<'_>, a: &Args) -> Result {
    let attributes = &mut k.process.attributes;
    match a[0] & 0xffff_ffff {
        option::SET_PDEATHSIG => {
            attributes.death_signal = u32::try_from(a[1]).ok().filter(|&n| n <= signal::LAST).ok_or(Errno::INVAL)?;
        }
        option::GET_PDEATHSIG => {
            let signal = attributes.death_signal;
            user::write(k.mem, a[1], signal)?;
        }
        option::GET_DUMPABLE => return Ok(attributes.dumpable.into()),
        option::SET_DUMPABLE => attributes.dumpable = flag(a[1])?,
        option::GET_KEEPCAPS => return Ok(attributes.keeps_capabilities.into()),
        option::SET_KEEPCAPS => attributes.keeps_capabilities = flag(a[1])?,
        option::SET_NAME => {
            let name = user::string(k.mem, a[1])?;
            let len = name.len().min(15);
            k.thread.name = [0; 16];
            k.thread.name[..len].copy_from_slice(&name[..len]);
            k.note_name(false);
        }
        option::GET_NAME => user::write(k.mem, a[1], k.thread.name)?,
        // No filter is active, and no securebits are set.
        option::GET_SECCOMP | option::GET_SECUREBITS => {}
        option::CAPBSET_READ if a[1] <= u64::from(LAST_CAPABILITY) => return Ok(1),
        option::CAPBSET_DROP
            if a[1] <= u64::from(LAST_CAPABILITY) && !attributes.capabilities.has(capability::SETPCAP) =>
        {
            return Err(Errno::PERM);
        }
        option::SET_TIMERSLACK => k.thread.timer_slack_ns = if a[1] == 0 { DEFAULT_SLACK_NS } else { a[1] },
        option::GET_TIMERSLACK => return Ok(k.thread.timer_slack_ns),
        option::TASK_PERF_EVENTS_DISABLE => perf::enable_own(k, false),
        option::TASK_PERF_EVENTS_ENABLE => perf::enable_own(k, true),
        option::SET_CHILD_SUBREAPER => attributes.subreaper = a[1] != 0,
        option::GET_CHILD_SUBREAPER => {
            let is = u32::from(attributes.subreaper);
            user::write(k.mem, a[1], is)?;
        }
        option::SET_NO_NEW_PRIVS if a[1] == 1 && a[2..5] == [0; 3] => attributes.no_new_privileges = true,
        option::GET_NO_NEW_PRIVS if a[1..5] == [0; 4] => return Ok(attributes.no_new_privileges.into()),
        option::GET_TID_ADDRESS => user::write(k.mem, a[1], k.thread.clear_tid)?,
        option::SET_THP_DISABLE if a[2..5] == [0; 3] => {
            k.spaces[k.process.space].pages.disable_folios(a[1] != 0);
        }
        option::GET_THP_DISABLE if a[1..5] == [0; 4] => return Ok(k.space().pages.has_folios_disabled().into()),
        option::CAP_AMBIENT => return ambient(a),
        option::SVE_GET_VL => return Ok(vector_length(k.thread, k.thread.cpu.vl)),
        option::SVE_SET_VL => return set_vector_length(k, a[1]),
        _ => return Err(Errno::INVAL),
    }
    Ok(0)
}

/// `PR_CAP_AMBIENT`: the set is always empty, since only inheritable capabilities may be in it.
fn ambient(a: &Args) -> Result {
    const IS_SET: u64 = 1;
    const RAISE: u64 = 2;
    const LOWER: u64 = 3;
    const CLEAR_ALL: u64 = 4;
    match a[1] {
        CLEAR_ALL if a[2..5] == [0; 3] => Ok(0),
        IS_SET | LOWER if a[2] <= u64::from(LAST_CAPABILITY) => Ok(0),
        RAISE if a[2] <= u64::from(LAST_CAPABILITY) => Err(Errno::PERM),
        _ => Err(Errno::INVAL),
    }
}

/// `PR_SVE_SET_VL`: sets the largest length of the machine that does not exceed the requested one.
fn set_vector_length(k: &mut Kernel<'_>, argument: u64) -> Result {
    /// `PR_SVE_VL_LEN_MASK`.
    const LENGTH: u64 = 0xffff;
    const SET_ON_EXEC: u64 = 1 << 18;
    /// `SVE_VL_MAX`: the maximum vector length that Linux supports, bytes.
    const MAX: u64 = 8192;
    let (wanted, flags) = (argument & LENGTH, argument & !LENGTH);
    if flags & !(SVE_VL_INHERIT | SET_ON_EXEC) != 0 || !(16..=MAX).contains(&wanted) || !wanted.is_multiple_of(16) {
        return Err(Errno::INVAL);
    }
    let possible = [64, 32, 16].into_iter().filter(|&vl| vl <= k.system.platform.vector_bytes);
    let vl = possible.into_iter().find(|&vl| vl as u64 <= wanted).unwrap_or(16);
    k.thread.next_vl = NextVl { inherit: flags & SVE_VL_INHERIT != 0, on_exec: (flags != 0).then_some(vl) };
    if flags & SET_ON_EXEC != 0 {
        return Ok(vector_length(k.thread, vl));
    }
    if vl != k.thread.cpu.vl {
        // The system call has already reduced the registers to the SIMD&FP part.
        k.thread.cpu.vl = vl;
        k.process.code_changed = true;
    }
    Ok(vector_length(k.thread, vl))
}

/// Returns the result of the calls about the vector length for the length `vl`.
fn vector_length(t: &Thread, vl: usize) -> u64 {
    vl as u64 | if t.next_vl.inherit { SVE_VL_INHERIT } else { 0 }
}
