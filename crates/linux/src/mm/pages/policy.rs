//! Memory policies: the nodes for the pages of a thread or of a range (set_mempolicy(2), mbind(2)).

use std::fmt;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Memory nodes as a bit mask over their numbers.
pub type NodeMask = u64;

/// Where the pages of a range are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placement {
    /// On the node of the processor that first touches a page.
    FirstTouch,
    /// On this node.
    Node(u32),
    /// On these nodes in turn. Page number `n` (its address divided by the page size) is on the node with index `n` modulo their
    /// number, if all have the same weight.
    Interleave(NodeMask, Weights),
}

/// Most nodes with weights of their own.
const MOST_WEIGHTS: usize = 24;

/// How many pages in a row each node gets when pages are interleaved (`MPOL_WEIGHTED_INTERLEAVE`), by its index among the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Weights([u8; MOST_WEIGHTS]);

impl Weights {
    /// Returns the weights of nodes: by number, and 1 for all others.
    #[must_use]
    pub fn new(nodes: NodeMask, of: &[(u32, u8)]) -> Weights {
        let mut weights = [1; MOST_WEIGHTS];
        for (weight, node) in weights.iter_mut().zip((0..64).filter(|node| nodes >> node & 1 != 0)) {
            *weight = of.iter().rfind(|(other, _)| *other == node).map_or(1, |&(_, weight)| weight.max(1));
        }
        if weights == [1; MOST_WEIGHTS] { Weights::default() } else { Weights(weights) }
    }

    /// Returns whether all are equal to 1.
    #[must_use]
    pub fn are_equal(self) -> bool {
        self == Weights::default()
    }

    /// Returns the weight of the node with this index.
    #[must_use]
    pub fn of(self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(1).max(1).into()
    }

    /// Returns the pages of one round over `nodes`.
    pub(super) fn round(self, nodes: NodeMask) -> u64 {
        (0..nodes.count_ones() as usize).map(|index| self.of(index)).sum()
    }

    /// Returns the node of page number `n`.
    fn node(self, nodes: NodeMask, n: u64) -> u32 {
        let mut rest = n % self.round(nodes).max(1);
        for index in 0..nodes.count_ones() as usize {
            match rest.checked_sub(self.of(index)) {
                Some(left) => rest = left,
                None => return nth(nodes, index as u64),
            }
        }
        nth(nodes, 0)
    }
}

impl Placement {
    /// Returns the node of the page at `address` if a processor of node `own` touches it first; pages have `1 << shift` bytes.
    #[must_use]
    pub fn node(self, address: u64, shift: u32, own: u32) -> u32 {
        match self {
            Placement::FirstTouch => own,
            Placement::Node(node) => node,
            Placement::Interleave(nodes, weights) => weights.node(nodes, address >> shift),
        }
    }
}

/// Returns the node with index `n`, counted from 0, in a mask.
fn nth(mask: NodeMask, n: u64) -> u32 {
    (0..64).filter(|node| mask >> node & 1 != 0).nth(n as usize).unwrap_or(0)
}

/// How the nodes of a policy are used (`MPOL_…`, in the order of their numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Mode {
    #[default]
    Default,
    Preferred,
    Bind,
    Interleave,
    Local,
    PreferredMany,
    WeightedInterleave,
}

impl Mode {
    const ALL: [Mode; 7] = [
        Mode::Default,
        Mode::Preferred,
        Mode::Bind,
        Mode::Interleave,
        Mode::Local,
        Mode::PreferredMany,
        Mode::WeightedInterleave,
    ];
}

/// Flags in addition to a mode (Linux `mempolicy.h`).
mod flag {
    pub const NUMA_BALANCING: u64 = 0x2000;
    pub const RELATIVE: u64 = 0x4000;
    pub const STATIC: u64 = 0x8000;
    pub const ALL: u64 = NUMA_BALANCING | RELATIVE | STATIC;
}

/// A policy of a thread or of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Policy {
    pub mode: Mode,
    /// [`flag`]s given with the mode.
    flags: u64,
    /// The nodes as given, which the program can read back.
    given: NodeMask,
    /// The nodes of the machine that it selects.
    nodes: NodeMask,
    /// Their weights, if pages are interleaved.
    weights: Weights,
}

impl Policy {
    /// Allocates only on these nodes of the machine.
    pub(crate) fn bind(nodes: NodeMask) -> Policy {
        Policy { mode: Mode::Bind, flags: 0, given: nodes, nodes, weights: Weights::default() }
    }

    /// Interleaves pages over these nodes of the machine.
    pub(crate) fn interleave(nodes: NodeMask, weights: Weights) -> Policy {
        let mode = if weights.are_equal() { Mode::Interleave } else { Mode::WeightedInterleave };
        Policy { mode, weights, ..Policy::bind(nodes) }
    }

    /// Returns the policy with a mode and flags as passed to system calls, on the nodes `given`, of which the machine has
    /// `machine`.
    pub(crate) fn new(mode: u64, given: NodeMask, machine: NodeMask) -> Result<Policy, Errno> {
        let flags = mode & flag::ALL;
        let mode = *Mode::ALL.get((mode & 0xffff_ffff & !flag::ALL) as usize).ok_or(Errno::INVAL)?;
        let contradictory = flags & flag::RELATIVE != 0 && flags & flag::STATIC != 0;
        let balancing = flags & flag::NUMA_BALANCING != 0 && !matches!(mode, Mode::Bind | Mode::PreferredMany);
        if contradictory || balancing {
            return Err(Errno::INVAL);
        }
        let named = |mode| Policy { mode, flags, given, nodes: 0, weights: Weights::default() };
        match mode {
            Mode::Default if given != 0 => Err(Errno::INVAL),
            Mode::Default => Ok(Policy::default()),
            Mode::Local if given != 0 || flags & (flag::RELATIVE | flag::STATIC) != 0 => Err(Errno::INVAL),
            Mode::Local => Ok(named(Mode::Local)),
            Mode::Preferred if given == 0 && flags & (flag::RELATIVE | flag::STATIC) == 0 => Ok(named(Mode::Local)),
            _ => {
                let nodes = if flags & flag::RELATIVE != 0 { relative(given, machine) } else { given & machine };
                let policy = Policy { nodes, ..named(mode) };
                if nodes == 0 { Err(Errno::INVAL) } else { Ok(policy) }
            }
        }
    }

    /// Returns mode and flags for `get_mempolicy`.
    pub(crate) fn word(self) -> u32 {
        (self.mode as u64 | self.flags) as u32
    }

    /// Returns the nodes for `get_mempolicy`.
    pub(crate) fn reported_nodes(self) -> NodeMask {
        if self.flags & (flag::RELATIVE | flag::STATIC) != 0 { self.given } else { self.nodes }
    }

    /// Returns the node of the thread's next interleaved page, if it interleaves.
    pub(crate) fn next_interleaved(self) -> Option<u32> {
        matches!(self.mode, Mode::Interleave | Mode::WeightedInterleave).then(|| self.nodes.trailing_zeros())
    }

    /// Returns the placement of pages first touched by a processor of node `own`.
    pub(crate) fn placement(self, own: u32) -> Placement {
        match self.mode {
            Mode::Default | Mode::Local => Placement::FirstTouch,
            Mode::Interleave | Mode::WeightedInterleave => Placement::Interleave(self.nodes, self.weights),
            Mode::Preferred => Placement::Node(self.nodes.trailing_zeros()),
            // The nearest one; all others are equally far.
            Mode::Bind | Mode::PreferredMany if self.nodes >> own & 1 != 0 => Placement::Node(own),
            Mode::Bind | Mode::PreferredMany => Placement::Node(self.nodes.trailing_zeros()),
        }
    }

    /// Returns whether placement depends on the node of the touching processor although the policy names nodes.
    pub(crate) fn depends_on_node(self) -> bool {
        matches!(self.mode, Mode::Bind | Mode::PreferredMany)
    }

    /// Returns whether the system chooses the node: the nearest one with room.
    pub(crate) fn is_local(self) -> bool {
        matches!(self.mode, Mode::Default | Mode::Local)
    }

    /// Returns whether the system may move pages by heat (`MPOL_F_NUMA_BALANCING` for pages that a policy places).
    pub(crate) fn balances(self) -> bool {
        self.is_local() || self.flags & flag::NUMA_BALANCING != 0
    }

    /// Returns whether the policy permits a page on `node`.
    pub(crate) fn permits(self, node: u32) -> bool {
        self.is_local() || self.nodes >> node & 1 != 0
    }
}

impl fmt::Display for Policy {
    /// As in `/proc/PID/numa_maps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.mode {
            Mode::Default => "default",
            Mode::Preferred => "prefer",
            Mode::Bind => "bind",
            Mode::Interleave => "interleave",
            Mode::Local => "local",
            Mode::PreferredMany => "prefer (many)",
            Mode::WeightedInterleave => "weighted interleave",
        })?;
        match self.flags & (flag::RELATIVE | flag::STATIC) {
            0 => {}
            flag::STATIC => f.write_str("=static")?,
            _ => f.write_str("=relative")?,
        }
        if self.nodes == 0 { Ok(()) } else { write!(f, ":{}", list(self.nodes)) }
    }
}

/// Returns where `migrate_pages` moves pages of `node`: from the nth node of `from` to the nth of `to`, modulo its number of
/// nodes.
pub(crate) fn remapped(node: u32, from: NodeMask, to: NodeMask) -> u32 {
    if from >> node & 1 == 0 {
        return node;
    }
    let place = (from & ((1 << node) - 1)).count_ones();
    nth(to, u64::from(place % to.count_ones().max(1)))
}

/// Returns the nodes given by index among those of the machine, modulo their number.
fn relative(given: NodeMask, machine: NodeMask) -> NodeMask {
    let count = u64::from(machine.count_ones().max(1));
    (0..64).filter(|n| given >> n & 1 != 0).fold(0, |mask, n| mask | 1 << nth(machine, n % count))
}

/// Returns a mask of nodes.
#[must_use]
pub fn mask(nodes: &[u32]) -> NodeMask {
    nodes.iter().filter(|&&node| node < NodeMask::BITS).fold(0, |mask, node| mask | 1 << node)
}

/// Formats the nodes of a mask as Linux does: `4-5,7`.
#[must_use]
pub fn list(mask: NodeMask) -> String {
    crate::fs::vfs::sysfs::list((0..64).filter(|node| mask >> node & 1 != 0))
}

/// Parses nodes in the syntax of numactl(8): `4`, `4,6`, `4-6`, `all`, `+0` (by index among the machine's nodes), and `!4` for
/// all others. `machine` lists the existing nodes.
///
/// # Errors
/// What is wrong, and which nodes exist.
pub fn parse_nodes(text: &str, machine: &[u32]) -> Result<NodeMask, String> {
    let there = mask(machine);
    let range = list(there);
    if text == "all" {
        return Ok(there);
    }
    let (inverted, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let (by_place, rest) = rest.strip_prefix('+').map_or((false, rest), |rest| (true, rest));
    let bad = || format!("'{text}' names no nodes; the machine has {range}: write 4, 4,5, 4-5, +0, !4 or all");
    let mut nodes = 0;
    for part in rest.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |digits: &str| digits.parse::<u32>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
        let (Some(first), Some(last)) = (number(first), number(last)) else { return Err(bad()) };
        if first > last {
            return Err(bad());
        }
        for number in first..=last.min(NodeMask::BITS + first) {
            let node = if by_place { machine.get(number as usize).copied() } else { Some(number) };
            let node = node.filter(|node| machine.contains(node));
            let node = node.ok_or_else(|| format!("there is no node {number}; the machine has nodes {range}"))?;
            nodes |= mask(&[node]);
        }
    }
    let nodes = if inverted { there & !nodes } else { nodes };
    if nodes == 0 { Err(bad()) } else { Ok(nodes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes 4 to 7.
    const MACHINE: NodeMask = 0xf0;
    const BIND: u64 = 2;
    const INTERLEAVE: u64 = 3;

    #[test]
    fn nodes_are_parsed_in_the_syntax_of_numactl() {
        let nodes = [4, 5, 6, 7];
        let cases =
            [("4", 0x10), ("4,6", 0x50), ("4-6", 0x70), ("all", 0xf0), ("+0,2", 0x50), ("!4", 0xe0), ("!+0", 0xe0)];
        for (text, mask) in cases {
            assert_eq!(parse_nodes(text, &nodes), Ok(mask), "{text}");
        }
        assert_eq!(parse_nodes("3", &nodes), Err("there is no node 3; the machine has nodes 4-7".to_owned()));
        assert_eq!(
            parse_nodes("4-4000000000", &nodes),
            Err("there is no node 8; the machine has nodes 4-7".to_owned())
        );
        for text in ["", "x", "6-4", "!all", "!4-7", "4,,5", "-4"] {
            assert!(parse_nodes(text, &nodes).is_err_and(|message| message.contains("4-7")), "{text}");
        }
    }

    #[test]
    fn interleaved_pages_rotate_over_the_nodes_by_page_number() {
        let nodes: Vec<u32> =
            (0..5).map(|n| Placement::Interleave(0xb0, Weights::default()).node(n << 21, 21, 4)).collect();
        assert_eq!(nodes, [4, 5, 7, 4, 5]);
        // Addresses within a page are on the same node.
        assert_eq!(Placement::Interleave(0xb0, Weights::default()).node((1 << 21) + 0x1f_0000, 21, 4), 5);
    }

    #[test]
    fn nodes_with_weights_get_as_many_pages_in_a_row() {
        let weights = Weights::new(0x110, &[(4, 3)]);
        let nodes: Vec<u32> = (0..8).map(|n| Placement::Interleave(0x110, weights).node(n << 16, 16, 4)).collect();
        assert_eq!(nodes, [4, 4, 4, 8, 4, 4, 4, 8]);
        assert!(Weights::new(0x110, &[(8, 1)]).are_equal());
        assert_eq!(Policy::interleave(0x110, weights).to_string(), "weighted interleave:4,8");
    }

    #[test]
    fn bound_memory_is_on_the_touching_node_if_permitted() {
        let policy = Policy::new(BIND, 0x60, MACHINE).expect("valid");
        assert_eq!(policy.placement(6), Placement::Node(6));
        assert_eq!(policy.placement(4), Placement::Node(5));
    }

    #[test]
    fn policies_are_checked_as_linux_checks_them() {
        const RELATIVE: u64 = 0x4000;
        const STATIC: u64 = 0x8000;
        // Nonexistent nodes are ignored; at least one must be left.
        assert_eq!(Policy::new(BIND, 0x18, MACHINE).map(Policy::reported_nodes), Ok(0x10));
        assert_eq!(Policy::new(BIND | STATIC, 0x18, MACHINE).map(Policy::reported_nodes), Ok(0x18));
        assert_eq!(Policy::new(BIND, 0x0f, MACHINE), Err(Errno::INVAL));
        assert_eq!(Policy::new(BIND, 0, MACHINE), Err(Errno::INVAL));
        assert_eq!(Policy::new(0, 0x10, MACHINE), Err(Errno::INVAL));
        assert_eq!(Policy::new(7, 0x10, MACHINE), Err(Errno::INVAL));
        assert_eq!(Policy::new(BIND | RELATIVE | STATIC, 0x10, MACHINE), Err(Errno::INVAL));
        // Preferring no node is local allocation.
        assert_eq!(Policy::new(1, 0, MACHINE).map(|policy| policy.mode), Ok(Mode::Local));
        // Indices 1 and 6 of 4 nodes: the second and, modulo 4, the third.
        let relative = Policy::new(INTERLEAVE | RELATIVE, 0x42, MACHINE).expect("valid");
        assert_eq!(relative.placement(4), Placement::Interleave(0x60, Weights::default()));
    }
}
