//! What an instruction costs: micro-operations, their flows through the pipes, and latencies.
//!
//! A row of `instructions.csv` gives pipes and latencies in the manual's notation (`/` separates
//! micro-operations, `+` sequential flows, `,` independent flows, `[n]` depends on the micro-operation
//! *n* places earlier, …); a [`Recipe`] is the same, parsed.

use std::sync::Arc;

use fxscope_isa::ClassId;

use crate::evidence::Evidence;
use crate::spec::LoadStore;

/// Most micro-operations of one instruction: the model's number of registers for results between them.
pub const MAX_UOPS: usize = 64;
/// Most flows of one micro-operation, unless it blocks its pipe.
pub const MAX_FLOWS: usize = 4;
/// Longest latency, cycles: the model keeps them in a byte.
pub const MAX_LATENCY: u32 = 255;
/// Most times one flow is repeated.
pub const MAX_REPEAT: u32 = 64;
/// Most virtual ports of each kind that one instruction takes.
pub const MAX_PORTS: u64 = 255;

/// A set of execution pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pipes(pub u8);

impl Pipes {
    /// Integer pipe A.
    pub const EXA: Pipes = Pipes(1);
    /// Integer pipe B.
    pub const EXB: Pipes = Pipes(2);
    /// Address pipe A.
    pub const EAGA: Pipes = Pipes(4);
    /// Address pipe B.
    pub const EAGB: Pipes = Pipes(8);
    /// Floating-point pipe A.
    pub const FLA: Pipes = Pipes(16);
    /// Floating-point pipe B.
    pub const FLB: Pipes = Pipes(32);
    /// Predicate pipe.
    pub const PRX: Pipes = Pipes(64);
    /// Branch pipe.
    pub const BR: Pipes = Pipes(128);

    /// Both sets.
    #[must_use]
    pub const fn or(self, other: Pipes) -> Pipes {
        Pipes(self.0 | other.0)
    }
    /// The pipes that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Pipes) -> Pipes {
        Pipes(self.0 & !other.0)
    }
    /// Whether the set has a pipe of `other`.
    #[must_use]
    pub const fn meets(self, other: Pipes) -> bool {
        self.0 & other.0 != 0
    }
    /// Whether the set has a pipe, and none outside of `other`.
    #[must_use]
    pub const fn within(self, other: Pipes) -> bool {
        self.0 != 0 && self.0 & !other.0 == 0
    }
    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Which of the machine's load-to-use latencies a load has: a key of its table `load_store`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadToUse {
    /// Into a general-purpose register.
    Integer,
    /// Into a SIMD&FP register, in short mode.
    Short,
    /// Into SVE registers, or several registers, in long mode.
    Long,
}

impl LoadToUse {
    /// All of them.
    pub const ALL: [LoadToUse; 3] = [LoadToUse::Integer, LoadToUse::Short, LoadToUse::Long];

    /// The word for it in `instructions.csv`, which is the key in `machine.toml`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LoadToUse::Integer => "load_integer",
            LoadToUse::Short => "load_short",
            LoadToUse::Long => "load_long",
        }
    }

    /// The machine's value, cycles.
    #[must_use]
    pub const fn cycles(self, load_store: &LoadStore) -> u64 {
        match self {
            LoadToUse::Integer => load_store.load_integer,
            LoadToUse::Short => load_store.load_short,
            LoadToUse::Long => load_store.load_long,
        }
    }
}

/// One pass through a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The pipes it may use.
    pub pipes: Pipes,
    /// It uses all of them at once (`&`), not one of them.
    pub all_pipes: bool,
    /// Cycles from execution to result; 0 when the row gives none (`NA`).
    pub latency: u32,
    /// Longest latency where it varies with the operands; otherwise equal to `latency`.
    pub latency_max: u32,
    /// For a load, the load-to-use latency of the machine that both are.
    pub load: Option<LoadToUse>,
    /// Flows issued back to back (`Pipe(L, N)`).
    pub repeat: u32,
    /// Cycles of fixed bypass between the flow before and this one (`NULL`).
    pub wait: u32,
    /// Starts without waiting for the flow before it in the same micro-operation (`,`).
    pub independent: bool,
}

/// What an operation blocks while it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Blocking {
    /// Nothing: a new operation each cycle.
    #[default]
    None,
    /// Its pipe, until it ends (`P`).
    Pipe,
    /// Other operations of this kind in its pipe, until it ends (`E`).
    Operation,
}

/// A micro-operation of the same instruction whose result is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// How many places earlier it stands.
    pub places: u32,
    /// The flow that waits for it, counted from 0: `1+[1]8` lets the first one go ahead.
    pub flow: u32,
}

/// One micro-operation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Uop {
    /// Its flows, in order.
    pub flows: Vec<Flow>,
    /// The micro-operations it depends on.
    pub depends: Vec<Dependence>,
    /// What it blocks.
    pub blocking: Blocking,
}

/// One row of `instructions.csv`, parsed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Recipe {
    /// The micro-operations in order; at least one. Rows with the same ones share them.
    pub uops: Arc<[Uop]>,
    /// Expanded at decode one after another, each in a group of its own.
    pub sequential: bool,
    /// Waits in decode until the instruction before it commits.
    pub pre_sync: bool,
    /// Followers wait in decode until it commits.
    pub post_sync: bool,
    /// Its first micro-operation takes a temporary operand register.
    pub temporary_operand: bool,
    /// A MOVPRFX before it is packed with it.
    pub movprfx_packable: bool,
    /// One more micro-operation when packed with a merging MOVPRFX.
    pub movprfx_extra_uop: bool,
    /// Virtual fetch ports taken.
    pub fetch_ports: u32,
    /// Virtual store ports taken.
    pub store_ports: u32,
    /// How well the row is known; none where neither the row nor `machine.toml` says.
    pub evidence: Option<Evidence>,
    /// Line of the row in its file, for messages.
    pub line: u32,
}

/// Recipes by timing class, resolved for one vector length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recipes {
    /// In alphabetical order of their classes.
    by_class: Vec<(String, Recipe)>,
}

impl Recipes {
    /// The recipe of a class, if the machine has a row for it.
    #[must_use]
    pub fn get(&self, class: ClassId) -> Option<&Recipe> {
        self.named(class.name())
    }

    /// The recipe of the class of this name.
    #[must_use]
    pub fn named(&self, class: &str) -> Option<&Recipe> {
        let place = self.by_class.binary_search_by(|(name, _)| name.as_str().cmp(class)).ok()?;
        Some(&self.by_class[place].1)
    }

    /// With the machine's load-to-use latencies.
    pub(crate) fn set_loads(&mut self, load_store: &LoadStore) {
        self.change(
            |flow| flow.load.is_some(),
            |flow| {
                flow.latency = flow.load.map_or(flow.latency, |load| load.cycles(load_store) as u32);
                flow.latency_max = flow.latency;
            },
        );
    }

    /// Without the pipe `gone`: its flows pass `instead`.
    pub(crate) fn close_pipe(&mut self, gone: Pipes, instead: Pipes) {
        self.change(|flow| flow.pipes.meets(gone), |flow| flow.pipes = flow.pipes.without(gone).or(instead));
    }

    /// Changes some of the flows.
    fn change(&mut self, which: impl Fn(&Flow) -> bool, change: impl Fn(&mut Flow)) {
        for (_, recipe) in &mut self.by_class {
            if recipe.uops.iter().flat_map(|uop| &uop.flows).any(&which) {
                let flows = Arc::make_mut(&mut recipe.uops).iter_mut().flat_map(|uop| &mut uop.flows);
                flows.filter(|flow| which(flow)).for_each(&change);
            }
        }
    }

    /// All recipes with the names of their classes, in alphabetical order.
    pub fn sorted(&self) -> impl ExactSizeIterator<Item = (&str, &Recipe)> + Clone {
        self.by_class.iter().map(|(class, recipe)| (class.as_str(), recipe))
    }
}

impl FromIterator<(String, Recipe)> for Recipes {
    /// Of several recipes of a class, the last one counts.
    fn from_iter<I: IntoIterator<Item = (String, Recipe)>>(rows: I) -> Recipes {
        let mut by_class: Vec<_> = rows.into_iter().collect();
        by_class.sort_by(|(a, _), (b, _)| a.cmp(b));
        by_class.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
        Recipes { by_class }
    }
}
