//! Communicators: which rank of `MPI_COMM_WORLD` is which rank of each.
//!
//! Programs are only watched: at the entry of a function that makes a communicator, the arguments are noted for each rank, and at its
//! return the new handle. Such functions are collective, so that all ranks have called when the first one returns (MPI 4.0, chapter 7).
//! Communicators whose order of ranks does not follow from the arguments have unknown members. A handle that no such function has made
//! is `MPI_COMM_WORLD`'s.

use std::collections::BTreeMap;

use fxscope_linux::Guest;
use serde::{Deserialize, Serialize};

use super::functions::{self, Making, Members};

/// Communicators that are followed; members of further ones are unknown.
const MOST: usize = 1 << 12;

/// The number of `MPI_COMM_WORLD`.
const WORLD: u32 = 0;
/// The number of all communicators with unknown members.
const UNKNOWN: u32 = u32::MAX;

/// A call that makes a communicator, or a window.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct MakingCall {
    /// Where the new handle is written.
    place: u64,
    /// The communicator from which it is made, and which of the calls for that this is.
    parent: u32,
    turn: u32,
    /// Whether members of the parent are those of the new one, in the same order.
    same: bool,
    /// The color of a split.
    color: i32,
}

/// What the ranks have said in a split: color and key, by the rank in the parent.
type Said = BTreeMap<u32, (i32, i32)>;

/// The communicators of a run.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Communicators {
    /// Ranks of `MPI_COMM_WORLD` by rank; that of number `n` is in place `n - 1`.
    members: Vec<Vec<u32>>,
    /// Numbers by process and handle, unless it is `MPI_COMM_WORLD`.
    handles: BTreeMap<(u32, u64), u32>,
    /// Number of making calls by process and parent.
    turns: BTreeMap<(u32, u32), u32>,
    /// Splits by parent and turn.
    splits: BTreeMap<(u32, u32), Said>,
    /// Numbers of those made, by parent, turn and color.
    made: BTreeMap<(u32, u32, i32), u32>,
}

impl Communicators {
    /// Notes that the running thread, of a process with this rank, calls a function that makes a communicator.
    pub(super) fn makes(&mut self, making: Making, rank: u32, guest: &mut Guest) -> Option<MakingCall> {
        let pid = guest.pid();
        let place = functions::argument(making.new, guest)?;
        let handle = functions::argument(making.from, guest)?;
        let parent = self.number(pid, handle);
        if parent == UNKNOWN || self.turns.len() >= MOST || self.splits.len() >= MOST {
            return Some(MakingCall { place, parent: UNKNOWN, turn: 0, same: false, color: 0 });
        }
        let turn = self.turns.entry((pid, parent)).or_default();
        *turn += 1;
        let turn = *turn;
        let mut int = |argument| functions::argument(argument, guest).map_or(0, |value| value as i32);
        let (same, color) = match making.members {
            Members::Same => (true, 0),
            Members::SameUnless(reorder) => (int(reorder) == 0, 0),
            Members::Split { color, key } => {
                let said = (int(color), int(key));
                if let Some(own) = self.rank_in(parent, rank) {
                    self.splits.entry((parent, turn)).or_default().insert(own, said);
                }
                (false, said.0)
            }
            Members::Unknown => return Some(MakingCall { place, parent: UNKNOWN, turn, same: false, color: 0 }),
        };
        Some(MakingCall { place, parent, turn, same, color })
    }

    /// Notes the handle that such a call has returned.
    pub(super) fn made(&mut self, call: MakingCall, guest: &mut Guest) {
        let Some(word) = guest.read_word(call.place) else { return };
        let handle = functions::handle(word);
        let number = self.number_of(call);
        self.handles.insert((guest.pid(), handle), number);
    }

    /// Returns the number of the communicator that a call makes.
    fn number_of(&mut self, call: MakingCall) -> u32 {
        let MakingCall { parent, turn, same, color, .. } = call;
        if parent == UNKNOWN {
            return UNKNOWN;
        }
        if let Some(&number) = self.made.get(&(parent, turn, color)) {
            return number;
        }
        let members = if same {
            match self.members_of(parent) {
                Some(members) => members.to_vec(),
                // Another number for the same ranks would only be needed for splits of both.
                None => return parent,
            }
        } else {
            let Some(said) = self.splits.get(&(parent, turn)) else { return UNKNOWN };
            let mut own: Vec<(i32, u32)> =
                said.iter().filter(|(_, said)| said.0 == color).map(|(&rank, said)| (said.1, rank)).collect();
            own.sort_unstable();
            own.into_iter().filter_map(|(_, rank)| self.world_rank(parent, rank)).collect()
        };
        if self.members.len() >= MOST {
            return UNKNOWN;
        }
        self.members.push(members);
        let number = self.members.len() as u32;
        self.made.insert((parent, turn, color), number);
        number
    }

    /// Returns the rank in `MPI_COMM_WORLD` of a rank of the communicator, or window, that has a handle in a process. `None`: it is not
    /// known.
    pub(super) fn translated(&self, pid: u32, handle: u64, rank: u32) -> Option<u32> {
        self.world_rank(self.number(pid, handle), rank)
    }

    fn number(&self, pid: u32, handle: u64) -> u32 {
        self.handles.get(&(pid, functions::handle(handle))).copied().unwrap_or(WORLD)
    }

    fn members_of(&self, number: u32) -> Option<&[u32]> {
        self.members.get(number.checked_sub(1)? as usize).map(|members| &members[..])
    }

    fn world_rank(&self, number: u32, rank: u32) -> Option<u32> {
        if number == WORLD { Some(rank) } else { self.members_of(number)?.get(rank as usize).copied() }
    }

    /// Returns the rank in a communicator of a rank of `MPI_COMM_WORLD`.
    fn rank_in(&self, number: u32, world: u32) -> Option<u32> {
        if number == WORLD {
            return Some(world);
        }
        self.members_of(number)?.iter().position(|&member| member == world).map(|rank| rank as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{Communicators, MakingCall, UNKNOWN, WORLD};

    fn split(parent: u32, turn: u32, color: i32) -> MakingCall {
        MakingCall { place: 0, parent, turn, same: false, color }
    }

    #[test]
    fn a_split_sorts_by_key_and_then_by_rank() {
        let mut all = Communicators::default();
        all.splits.insert((WORLD, 1), [(0, (0, 5)), (1, (1, 0)), (2, (0, 5)), (3, (0, -1))].into());
        let even = all.number_of(split(WORLD, 1, 0));
        assert_eq!([0, 1, 2, 3].map(|rank| all.world_rank(even, rank)), [Some(3), Some(0), Some(2), None]);
        assert_eq!(all.number_of(split(WORLD, 1, 0)), even, "one communicator for all of its ranks");
        let odd = all.number_of(split(WORLD, 1, 1));
        assert_eq!((all.world_rank(odd, 0), all.rank_in(even, 2), all.rank_in(odd, 2)), (Some(1), Some(2), None));
        // A split of it: rank 2 of `even`, which is world's 2, comes first.
        all.splits.insert((even, 1), [(0, (7, 2)), (1, (7, 1)), (2, (7, 0))].into());
        let again = all.number_of(split(even, 1, 7));
        assert_eq!([0, 1, 2].map(|rank| all.world_rank(again, rank)), [Some(2), Some(0), Some(3)]);
        let copy = all.number_of(MakingCall { same: true, ..split(again, 1, 0) });
        assert_eq!((all.world_rank(copy, 2), copy != again), (Some(3), true));
    }

    #[test]
    fn what_is_not_known_has_no_members() {
        let mut all = Communicators::default();
        assert_eq!(all.number_of(split(UNKNOWN, 0, 0)), UNKNOWN);
        assert_eq!(all.number_of(split(WORLD, 9, 0)), UNKNOWN, "nobody has called");
        assert_eq!((all.world_rank(UNKNOWN, 0), all.world_rank(WORLD, 7)), (None, Some(7)));
        all.handles.insert((1000, 0x8400_0001), UNKNOWN);
        assert_eq!(all.translated(1000, 0x8400_0001, 1), None);
        assert_eq!(all.translated(1001, 0x8400_0001, 1), Some(1), "of another process");
    }
}
