//! Memory policies. The address space has no placement: policies are checked, accepted, and have no effect.

use fxscope_aarch64::memory::PAGE;
use rustix::io::Errno;

use super::{Args, Result, guest};
use crate::kernel::Kernel;
use crate::thread::Thread;

/// Highest policy (`MPOL_WEIGHTED_INTERLEAVE`); 0 is the default one.
const LAST_POLICY: u64 = 6;

/// Flags that come with a policy: `MPOL_F_NUMA_BALANCING`, `MPOL_F_RELATIVE_NODES`, `MPOL_F_STATIC_NODES`.
const POLICY_FLAGS: u64 = 0xe000;

/// Most nodes that a mask may speak of.
const MAX_MASK: u64 = 1 << 16;

/// The node whose processor the thread runs on.
fn own_node(k: &Kernel, t: &Thread) -> u32 {
    let cpu = t.cpu_number();
    k.platform.cpus.iter().find(|place| place.cpu == cpu).map_or(0, |place| place.node)
}

/// Checks a mode and a mask of nodes: only nodes that exist may be named.
fn check_policy(k: &mut Kernel, mode: u64, mask: u64, bits: u64) -> std::result::Result<(), Errno> {
    if mode as u32 as u64 & !POLICY_FLAGS > LAST_POLICY || bits > MAX_MASK {
        return Err(Errno::INVAL);
    }
    if mask == 0 {
        return Ok(());
    }
    let nodes = k.platform.nodes();
    // The number of bits counts one more than there are.
    for word in 0..bits.saturating_sub(1).div_ceil(64) {
        let set: u64 = guest::read(&mut k.mem, mask.wrapping_add(8 * word))?;
        let named = (0..64).filter(|bit| set >> bit & 1 != 0).map(|bit| word * 64 + bit);
        if named.into_iter().any(|node| !nodes.iter().any(|&n| u64::from(n) == node)) {
            return Err(Errno::INVAL);
        }
    }
    Ok(())
}

pub(super) fn set_mempolicy(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    check_policy(k, a[0], a[1], a[2])?;
    Ok(0)
}

pub(super) fn mbind(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    if !a[0].is_multiple_of(PAGE) {
        return Err(Errno::INVAL);
    }
    check_policy(k, a[2], a[3], a[4])?;
    Ok(0)
}

pub(super) fn get_mempolicy(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    const NODE: u64 = 1;
    const ADDR: u64 = 2;
    const MEMS_ALLOWED: u64 = 4;
    let (mode, mask, bits, addr, flags) = (a[0], a[1], a[2], a[3], a[4]);
    let nodes = k.platform.nodes();
    let needed = nodes.iter().max().map_or(1, |&last| u64::from(last) + 1);
    if flags & !(NODE | ADDR | MEMS_ALLOWED) != 0 || (mask != 0 && !(needed..=MAX_MASK).contains(&bits)) {
        return Err(Errno::INVAL);
    }
    if flags & ADDR != 0 {
        k.mem.region_at(addr).ok_or(Errno::FAULT)?;
    } else if addr != 0 {
        return Err(Errno::INVAL);
    }
    let value = if flags & NODE != 0 { own_node(k, t) } else { 0 };
    guest::write_if(&mut k.mem, mode, value)?;
    if mask != 0 {
        let mut words = vec![0u64; bits.div_ceil(64) as usize];
        if flags & MEMS_ALLOWED != 0 {
            for node in nodes {
                words[node as usize / 64] |= 1 << (node % 64);
            }
        }
        guest::write_bytes(&mut k.mem, mask, bytemuck::cast_slice(&words))?;
    }
    Ok(0)
}

/// `move_pages`: says where pages are; they stay there.
pub(super) fn move_pages(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let (count, pages, status) = (a[1], a[2], a[4]);
    let node = own_node(k, t) as i32;
    for index in 0..count {
        let page: u64 = guest::read(&mut k.mem, pages.wrapping_add(8 * index))?;
        let missing = if k.mem.region_at(page).is_some() { Errno::NOENT } else { Errno::FAULT };
        let answer = if k.mem.physical(page).is_some() { node } else { -missing.raw_os_error() };
        guest::write(&mut k.mem, status.wrapping_add(4 * index), answer)?;
    }
    Ok(0)
}

/// `migrate_pages`: no page has to move.
pub(super) fn migrate_pages(_: &mut Kernel, _: &mut Thread, _: &Args) -> Result {
    Ok(0)
}
