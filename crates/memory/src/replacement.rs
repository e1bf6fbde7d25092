//! Replacement policies: which line of a full set is evicted for a new one.
//!
//! The machine selects a policy for each cache. A policy keeps one word per set, and is called when a line is used,
//! inserted or removed. The tag array decides which ways may be replaced: empty ones, then lines of the sectors that must give
//! up a line, and of these the ones that have arrived. The policy chooses among them, so every policy respects the limits of
//! the sectors.

mod fifo;
mod lru;
mod order;
pub(crate) mod random;
mod tree_plru;

use fxscope_machine::spec::Replacement;

/// What a policy does. It has no state but the words of the sets. Ways are numbers below [`MAX_WAYS`], sets of ways have a
/// bit for each.
///
/// [`MAX_WAYS`]: fxscope_machine::spec::MAX_WAYS
trait Policy {
    /// Whether [`Policy::first`] is an empty way while the set has one. Otherwise the tag array looks for empty ways.
    const FILLS_EMPTY_WAYS_FIRST: bool;

    /// The word of set number `set` while it is empty.
    fn empty(set: usize) -> u64;

    /// The line in `way` is used.
    fn used(word: &mut u64, way: usize);

    /// A new line comes into `way`.
    fn filled(word: &mut u64, way: usize);

    /// The line in `way`, one of `ways`, is removed: the way is empty.
    fn removed(word: &mut u64, way: usize, ways: usize);

    /// The way to be replaced among `candidates`, of which there is at least one.
    fn victim(word: u64, candidates: u32) -> usize;

    /// The way to be replaced if it may be any of `ways`.
    #[inline(always)]
    fn first(word: u64, ways: usize) -> usize {
        Self::victim(word, (1 << ways) - 1)
    }
}

/// Makes an enumeration of policies, which matches in place: the model calls no policy through a pointer.
macro_rules! policies {
    ($($policy:ident = $module:ident::$name:ident,)+) => {
        /// The policy of a cache.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
        pub(crate) enum Selected {
            $($policy,)+
        }

        impl From<Replacement> for Selected {
            fn from(replacement: Replacement) -> Selected {
                match replacement {
                    $(Replacement::$policy => Selected::$policy,)+
                }
            }
        }

        impl Selected {
            /// See [`Policy::FILLS_EMPTY_WAYS_FIRST`].
            #[inline(always)]
            pub fn fills_empty_ways_first(self) -> bool {
                match self {
                    $(Selected::$policy => $module::$name::FILLS_EMPTY_WAYS_FIRST,)+
                }
            }

            /// See [`Policy::empty`].
            pub fn empty(self, set: usize) -> u64 {
                match self {
                    $(Selected::$policy => $module::$name::empty(set),)+
                }
            }

            /// See [`Policy::used`].
            #[inline(always)]
            pub fn used(self, word: &mut u64, way: usize) {
                match self {
                    $(Selected::$policy => $module::$name::used(word, way),)+
                }
            }

            /// See [`Policy::filled`].
            #[inline(always)]
            pub fn filled(self, word: &mut u64, way: usize) {
                match self {
                    $(Selected::$policy => $module::$name::filled(word, way),)+
                }
            }

            /// See [`Policy::removed`].
            pub fn removed(self, word: &mut u64, way: usize, ways: usize) {
                match self {
                    $(Selected::$policy => $module::$name::removed(word, way, ways),)+
                }
            }

            /// See [`Policy::victim`].
            #[inline(always)]
            pub fn victim(self, word: u64, candidates: u32) -> usize {
                match self {
                    $(Selected::$policy => $module::$name::victim(word, candidates),)+
                }
            }

            /// See [`Policy::first`].
            #[inline(always)]
            pub fn first(self, word: u64, ways: usize) -> usize {
                match self {
                    $(Selected::$policy => $module::$name::first(word, ways),)+
                }
            }
        }
    };
}

policies! {
    Lru = lru::Lru,
    Fifo = fifo::Fifo,
    TreePlru = tree_plru::TreePlru,
    Random = random::Random,
}
