//! System calls about users, groups and capabilities. They change what the process sees, not what it may do with the host's files.

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;

use super::{Args, Result};
use crate::attributes::{Attributes, Ids, LAST_CAPABILITY, capability};
use crate::kernel::Kernel;
use crate::mm::user;

/// Maximum number of supplementary groups (`NGROUPS_MAX`).
const MOST_GROUPS: u64 = 65_536;

pub(super) fn getuid(k: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(k.process.attributes.users.real.into())
}

pub(super) fn geteuid(k: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(k.process.attributes.users.effective.into())
}

pub(super) fn getgid(k: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(k.process.attributes.groups.real.into())
}

pub(super) fn getegid(k: &mut Kernel<'_>, _: &Args) -> Result {
    Ok(k.process.attributes.groups.effective.into())
}

fn get_all(k: &mut Kernel<'_>, ids: Ids, a: &Args) -> Result {
    for (id, &pointer) in [ids.real, ids.effective, ids.saved].into_iter().zip(a) {
        user::write(k.mem, pointer, id)?;
    }
    Ok(0)
}

pub(super) fn getresuid(k: &mut Kernel<'_>, a: &Args) -> Result {
    let ids = k.process.attributes.users;
    get_all(k, ids, a)
}

pub(super) fn getresgid(k: &mut Kernel<'_>, a: &Args) -> Result {
    let ids = k.process.attributes.groups;
    get_all(k, ids, a)
}

/// Changes the users by `change`; its second argument says whether the process may have any.
fn change_users<T>(
    k: &mut Kernel<'_>,
    change: impl FnOnce(&mut Ids, bool) -> std::result::Result<T, Errno>,
) -> std::result::Result<T, Errno> {
    let attributes = &mut k.process.attributes;
    let (before, privileged) = (attributes.users, attributes.capabilities.has(capability::SETUID));
    let result = change(&mut attributes.users, privileged)?;
    attributes.users_changed(before);
    Ok(result)
}

/// The same for the groups.
fn change_groups<T>(
    k: &mut Kernel<'_>,
    change: impl FnOnce(&mut Ids, bool) -> std::result::Result<T, Errno>,
) -> std::result::Result<T, Errno> {
    let Attributes { groups, capabilities, .. } = &mut k.process.attributes;
    change(groups, capabilities.has(capability::SETGID))
}

pub(super) fn setuid(k: &mut Kernel<'_>, a: &Args) -> Result {
    change_users(k, |users, privileged| users.set(a[0] as u32, privileged)).map(|()| 0)
}

pub(super) fn setgid(k: &mut Kernel<'_>, a: &Args) -> Result {
    change_groups(k, |groups, privileged| groups.set(a[0] as u32, privileged)).map(|()| 0)
}

pub(super) fn setreuid(k: &mut Kernel<'_>, a: &Args) -> Result {
    change_users(k, |users, privileged| users.set_real_and_effective(a[0] as u32, a[1] as u32, privileged)).map(|()| 0)
}

pub(super) fn setregid(k: &mut Kernel<'_>, a: &Args) -> Result {
    change_groups(k, |groups, privileged| groups.set_real_and_effective(a[0] as u32, a[1] as u32, privileged))
        .map(|()| 0)
}

pub(super) fn setresuid(k: &mut Kernel<'_>, a: &Args) -> Result {
    let wanted = [a[0], a[1], a[2]].map(|id| id as u32);
    change_users(k, |users, privileged| users.set_all(wanted, privileged)).map(|()| 0)
}

pub(super) fn setresgid(k: &mut Kernel<'_>, a: &Args) -> Result {
    let wanted = [a[0], a[1], a[2]].map(|id| id as u32);
    change_groups(k, |groups, privileged| groups.set_all(wanted, privileged)).map(|()| 0)
}

pub(super) fn setfsuid(k: &mut Kernel<'_>, a: &Args) -> Result {
    change_users(k, |users, privileged| Ok(users.set_files(a[0] as u32, privileged))).map(u64::from)
}

pub(super) fn setfsgid(k: &mut Kernel<'_>, a: &Args) -> Result {
    change_groups(k, |groups, privileged| Ok(groups.set_files(a[0] as u32, privileged))).map(u64::from)
}

pub(super) fn getgroups(k: &mut Kernel<'_>, a: &Args) -> Result {
    let groups = k.process.attributes.others.clone();
    match a[0] as i32 {
        0 => {}
        room if i64::from(room) < groups.len() as i64 => return Err(Errno::INVAL),
        _ => user::write_bytes(k.mem, a[1], bytemuck::cast_slice(&groups))?,
    }
    Ok(groups.len() as u64)
}

pub(super) fn setgroups(k: &mut Kernel<'_>, a: &Args) -> Result {
    if !k.process.attributes.capabilities.has(capability::SETGID) {
        return Err(Errno::PERM);
    }
    if a[0] > MOST_GROUPS {
        return Err(Errno::INVAL);
    }
    k.afford(4 * a[0])?;
    let bytes = user::read_bytes(k.mem, a[1], 4 * a[0] as usize)?;
    k.process.attributes.others = bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    Ok(0)
}

/// `struct __user_cap_header_struct`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`: 32 capabilities of each kind.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The version of the kernel's structures.
const VERSION: u32 = 0x2008_0522;

/// Reads the header; returns it and the number of data structures of its version. `None`: the version is unknown, and the header
/// now has the kernel's.
fn header(k: &mut Kernel<'_>, pointer: u64) -> std::result::Result<Option<(Header, usize)>, Errno> {
    let header: Header = user::read(k.mem, pointer)?;
    let count = match header.version {
        0x1998_0330 => 1,
        0x2007_1026 | VERSION => 2,
        _ => {
            user::write(k.mem, pointer, VERSION)?;
            return Ok(None);
        }
    };
    if header.pid < 0 { Err(Errno::INVAL) } else { Ok(Some((header, count))) }
}

pub(super) fn capget(k: &mut Kernel<'_>, a: &Args) -> Result {
    let Some((header, count)) = header(k, a[0])? else {
        return if a[1] == 0 { Ok(0) } else { Err(Errno::INVAL) };
    };
    let pid = if header.pid == 0 { k.process.pid } else { header.pid as u32 };
    let pid = k.all_threads().find(|thread| thread.tid == pid).map_or(pid, |thread| thread.pid);
    let caps = k.process_of(pid).ok_or(Errno::SRCH)?.attributes.capabilities;
    let part = |mask: u64, n: usize| (mask >> (32 * n)) as u32;
    for n in 0..if a[1] == 0 { 0 } else { count } {
        let data = Data {
            effective: part(caps.effective, n),
            permitted: part(caps.permitted, n),
            inheritable: part(caps.inheritable, n),
        };
        user::write(k.mem, a[1].wrapping_add((n * size_of::<Data>()) as u64), data)?;
    }
    Ok(0)
}

pub(super) fn capset(k: &mut Kernel<'_>, a: &Args) -> Result {
    let Some((header, count)) = header(k, a[0])? else { return Err(Errno::INVAL) };
    if header.pid != 0 && header.pid as u32 != k.process.pid && header.pid as u32 != k.thread.tid {
        return Err(Errno::PERM);
    }
    let (mut effective, mut permitted, mut inheritable) = (0u64, 0u64, 0u64);
    for n in 0..count {
        let data: Data = user::read(k.mem, a[1].wrapping_add((n * size_of::<Data>()) as u64))?;
        effective |= u64::from(data.effective) << (32 * n);
        permitted |= u64::from(data.permitted) << (32 * n);
        inheritable |= u64::from(data.inheritable) << (32 * n);
    }
    // Bits beyond the last capability are ignored.
    let known = (1 << (LAST_CAPABILITY + 1)) - 1;
    let [effective, permitted, inheritable] = [effective, permitted, inheritable].map(|mask| mask & known);
    let caps = &mut k.process.attributes.capabilities;
    let may_inherit = caps.inheritable | if caps.has(capability::SETPCAP) { known } else { caps.permitted };
    if permitted & !caps.permitted != 0 || effective & !permitted != 0 || inheritable & !may_inherit != 0 {
        return Err(Errno::PERM);
    }
    (caps.effective, caps.permitted, caps.inheritable) = (effective, permitted, inheritable);
    Ok(0)
}
