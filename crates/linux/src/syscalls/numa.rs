//! Memory policies of threads and ranges, and the nodes of pages.

use std::ops::Range;

use fxscope_guestmem::{PAGE, USER_END};
use rustix::io::Errno;

use super::{Args, Result};
use crate::kernel::Kernel;
use crate::mm::pages::{NodeMask, Policy};
use crate::mm::user;

/// Maximum number of nodes in a mask.
const MAX_MASK: u64 = 8 * PAGE;

/// Flags of `mbind` and `move_pages`.
mod flag {
    pub const STRICT: u64 = 1;
    pub const MOVE: u64 = 2;
    pub const MOVE_ALL: u64 = 4;
}

/// Reads a mask of nodes; `bits` is one more than their number. Empty if the pointer is null.
fn read_mask(k: &mut Kernel<'_>, mask: u64, bits: u64) -> std::result::Result<NodeMask, Errno> {
    let bits = bits.saturating_sub(1);
    if bits > MAX_MASK {
        return Err(Errno::INVAL);
    }
    if mask == 0 || bits == 0 {
        return Ok(0);
    }
    let mut nodes = 0;
    for word in 0..bits.div_ceil(64) {
        let set: u64 = user::read(k.mem, mask.wrapping_add(8 * word))?;
        let counted = (bits - 64 * word).min(64);
        let set = if counted < 64 { set & ((1 << counted) - 1) } else { set };
        match word {
            0 => nodes = set,
            // No machine has nodes beyond the first word.
            _ if set != 0 => return Err(Errno::INVAL),
            _ => {}
        }
    }
    Ok(nodes)
}

/// Writes a mask of nodes; `bits` is one more than their number.
fn write_mask(k: &mut Kernel<'_>, mask: u64, bits: u64, nodes: NodeMask) -> std::result::Result<(), Errno> {
    let mut words = vec![0u64; bits.saturating_sub(1).div_ceil(64) as usize];
    if let Some(first) = words.first_mut() {
        *first = nodes;
    }
    user::write_bytes(k.mem, mask, bytemuck::cast_slice(&words))
}

pub(super) fn set_mempolicy(k: &mut Kernel<'_>, a: &Args) -> Result {
    let nodes = read_mask(k, a[1], a[2])?;
    let before = k.toucher();
    k.thread.policy = Policy::new(a[0], nodes, k.system.platform.node_mask())?;
    let who = k.toucher();
    k.spaces[k.process.space].pages.toucher_changed(before, who);
    Ok(0)
}

pub(super) fn mbind(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (start, len, mode, flags) = (a[0], a[1], a[2], a[5]);
    if !start.is_multiple_of(PAGE) || flags & !(flag::STRICT | flag::MOVE | flag::MOVE_ALL) != 0 {
        return Err(Errno::INVAL);
    }
    if flags & flag::MOVE_ALL != 0 {
        return Err(Errno::PERM);
    }
    let nodes = read_mask(k, a[3], a[4])?;
    let policy = Policy::new(mode, nodes, k.system.platform.node_mask())?;
    let end = len.checked_next_multiple_of(PAGE).and_then(|len| start.checked_add(len)).ok_or(Errno::INVAL)?;
    if start == end {
        return Ok(0);
    }
    if end > USER_END || !is_mapped(k, start..end) {
        return Err(Errno::FAULT);
    }
    k.spaces[k.process.space].pages.set_policy(start..end, policy);
    if flags & flag::MOVE != 0 {
        let own = k.toucher().node;
        k.spaces[k.process.space].pages.begin_move();
        k.spaces[k.process.space].pages.migrate(start..end, |page, shift, node| {
            if policy.permits(node) { node } else { policy.placement(own).node(page, shift, own) }
        });
    }
    let misplaced = flags & flag::STRICT != 0 && !k.spaces[k.process.space].pages.obeys(start..end, policy);
    if misplaced { Err(Errno::IO) } else { Ok(0) }
}

/// Returns whether every page of a range is mapped.
fn is_mapped(k: &Kernel<'_>, range: Range<u64>) -> bool {
    let mut at = range.start;
    while at < range.end {
        let Some(region) = k.mem.region_at(at) else { return false };
        at = region.end;
    }
    true
}

pub(super) fn get_mempolicy(k: &mut Kernel<'_>, a: &Args) -> Result {
    const NODE: u64 = 1;
    const ADDR: u64 = 2;
    const MEMS_ALLOWED: u64 = 4;
    let (word, mask, bits, address, flags) = (a[0], a[1], a[2], a[3], a[4]);
    let machine = k.system.platform.node_mask();
    let needed = u64::from(NodeMask::BITS - machine.leading_zeros());
    if flags & !(NODE | ADDR | MEMS_ALLOWED) != 0 || (mask != 0 && !(needed..=MAX_MASK).contains(&bits)) {
        return Err(Errno::INVAL);
    }
    let (value, nodes) = match flags {
        MEMS_ALLOWED => (0, machine),
        _ if flags & MEMS_ALLOWED != 0 => return Err(Errno::INVAL),
        _ if flags & ADDR != 0 => {
            k.mem.region_at(address).ok_or(Errno::FAULT)?;
            let policy = k.spaces[k.process.space].pages.policy_at(address).unwrap_or_default();
            let value = if flags & NODE != 0 { touched_node(k, address)? } else { policy.word() };
            (value, policy.reported_nodes())
        }
        _ if address != 0 => return Err(Errno::INVAL),
        NODE => (k.thread.policy.next_interleaved().ok_or(Errno::INVAL)?, k.thread.policy.reported_nodes()),
        _ => (k.thread.policy.word(), k.thread.policy.reported_nodes()),
    };
    user::write_if(k.mem, word, value)?;
    if mask != 0 {
        write_mask(k, mask, bits, nodes)?;
    }
    Ok(0)
}

/// Touches the page at an address and returns its node.
fn touched_node(k: &mut Kernel<'_>, address: u64) -> std::result::Result<u32, Errno> {
    user::read::<u8>(k.mem, address)?;
    k.note_touched();
    k.spaces[k.process.space].pages.node_at(address).ok_or(Errno::FAULT)
}

/// Checks that a call names the running process.
fn check_own(k: &Kernel<'_>, pid: u64) -> std::result::Result<(), Errno> {
    match pid as u32 {
        0 => Ok(()),
        pid if pid == k.process.pid => Ok(()),
        pid if k.other_processes.iter().any(|other| other.pid == pid) => Err(Errno::PERM),
        _ => Err(Errno::SRCH),
    }
}

/// `move_pages`: reports where pages are; if nodes are given, moves the pages there first.
pub(super) fn move_pages(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (pid, count, pages, nodes, status, flags) = (a[0], a[1], a[2], a[3], a[4], a[5]);
    if flags & !(flag::MOVE | flag::MOVE_ALL) != 0 {
        return Err(Errno::INVAL);
    }
    if flags & flag::MOVE_ALL != 0 {
        return Err(Errno::PERM);
    }
    check_own(k, pid)?;
    k.spaces[k.process.space].pages.begin_move();
    for index in 0..count {
        let page: u64 = user::read(k.mem, pages.wrapping_add(8 * index))?;
        if nodes != 0 {
            let node: i32 = user::read(k.mem, nodes.wrapping_add(4 * index))?;
            let node = u32::try_from(node).ok().filter(|&node| node < NodeMask::BITS).ok_or(Errno::NODEV)?;
            if k.system.platform.node_mask() >> node & 1 == 0 {
                return Err(Errno::NODEV);
            }
            k.spaces[k.process.space].pages.migrate(page..page.saturating_add(1), |_, _, _| node);
        }
        let missing = if k.mem.region_at(page).is_some() { Errno::NOENT } else { Errno::FAULT };
        let answer = k.spaces[k.process.space].pages.node_at(page).map_or(-missing.raw_os_error(), |node| node as i32);
        user::write(k.mem, status.wrapping_add(4 * index), answer)?;
    }
    Ok(0)
}

/// `migrate_pages`: moves pages between nodes, from the nth of the first set to the nth of the second, modulo its size.
pub(super) fn migrate_pages(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (pid, bits) = (a[0], a[1]);
    let (from, to) = (read_mask(k, a[2], bits)?, read_mask(k, a[3], bits)?);
    check_own(k, pid)?;
    let to = to & k.system.platform.node_mask();
    if to == 0 {
        return Err(Errno::INVAL);
    }
    k.spaces[k.process.space].pages.begin_move();
    k.spaces[k.process.space].pages.migrate(0..USER_END, |_, _, node| crate::mm::pages::remapped(node, from, to));
    Ok(0)
}
