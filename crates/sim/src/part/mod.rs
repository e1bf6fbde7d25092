//! Runs of which only a part is timed.
//!
//! What comes before is executed functionally, without a model of time, or *followed*: caches, translations and branch predictors are
//! kept up to date, and clocks advance by one cycle for each instruction, so that threads wait for one another as they would have.
//! What comes behind is executed functionally. Counts are those of the part: what is counted outside is subtracted.
//!
//! A part that is a region may have several executions. What comes between them is followed.

mod follow;
mod functional;
mod plan;
mod switch;
mod visits;

use std::collections::BTreeMap;

use fxscope_linux::Guest;
use fxscope_linux::guest::PID;
use serde::{Deserialize, Serialize};

use crate::markers::{Edge, Markers};
use crate::region::{self, Counts, Totals};
use crate::sectors::SectorData;
pub(crate) use follow::{Following, follow};
use plan::Place;
pub use plan::{Count, DEFAULT_WARMING, PartError, PartPlan, Point, Selection, Warming};
use visits::{Frame, Visits};

/// What is done with the instructions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Phase {
    /// They are executed, before the part.
    Skipped,
    /// They are followed.
    Followed,
    /// They are timed: they are the part.
    Timed,
    /// They are executed, behind the part.
    Behind,
}

/// How much of a run was timed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartSummary {
    /// Instructions before the part that were executed without a model of time.
    pub skipped: u64,
    /// Instructions that were followed.
    pub followed: u64,
    /// Instructions that were timed.
    pub timed: u64,
    /// Instructions behind the part.
    pub behind: u64,
    /// How often a part began: more than once for a region only.
    pub executions: u64,
    /// Simulated time when it first began, ns.
    pub begin_ns: u64,
    /// Whether the end that was asked for came.
    pub ended: bool,
}

/// The state of a run of which a part is timed.
#[derive(Deserialize, Serialize)]
pub(crate) struct Part {
    plan: PartPlan,
    phase: Phase,
    /// The phase is over.
    is_over: bool,
    /// Executions of the function or region with which the part begins (or which it is), and with which it ends.
    from: Visits,
    until: Visits,
    /// What was counted in the part until it was last left, and what was counted outside until it was last entered.
    frozen: Totals,
    outside: Totals,
    /// Instructions of the run at the last switch.
    switched_at: u64,
    /// Instructions and time when the part first began.
    began: Option<(u64, u64)>,
    passed: [u64; 4],
    executions: u64,
    /// Data assigned to sectors of caches, until there are caches.
    sectors: SectorData,
    /// The markers of each process that has run functionally.
    #[serde(skip)]
    markers: BTreeMap<u32, Markers>,
}

impl Part {
    /// Returns the state before a run.
    pub(crate) fn new(plan: &PartPlan) -> Part {
        let phase = plan.first_phase();
        let mut part = Part {
            plan: plan.clone(),
            phase,
            is_over: false,
            from: Visits::default(),
            until: Visits::default(),
            frozen: Totals::new(),
            outside: Totals::new(),
            switched_at: 0,
            began: None,
            passed: [0; 4],
            executions: 0,
            sectors: SectorData::new(),
            markers: BTreeMap::new(),
        };
        if phase == Phase::Timed {
            part.begins(0, 0);
        }
        part
    }

    /// Returns what is done with the instructions now.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns whether the run ends with the part.
    pub(crate) fn stops(&self) -> bool {
        self.plan.stops
    }

    /// Returns whether the phase is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The time has been reached with which the phase ends.
    pub(crate) fn reached(&mut self) {
        self.is_over = true;
    }

    /// Returns the place at which the phase ends, if it is known.
    fn end(&self) -> Option<Place> {
        let Selection::Between { from, until } = &self.plan.selection else { return None };
        match self.phase {
            Phase::Skipped | Phase::Followed => {
                let begin = from.as_ref()?.place()?;
                let ahead = if self.phase == Phase::Skipped { self.plan.followed() } else { 0 };
                Some(match begin {
                    Place::Instructions(n) => Place::Instructions(n.saturating_sub(ahead)),
                    Place::Ns(ns) => Place::Ns(ns.saturating_sub(ahead)),
                })
            }
            Phase::Timed => {
                let (instructions, ns) = self.began?;
                match until.as_ref()? {
                    &Point::Instructions(Count::OfPart(n)) => Some(Place::Instructions(instructions.saturating_add(n))),
                    &Point::Time(Count::OfPart(n)) => Some(Place::Ns(ns.saturating_add(n))),
                    other => other.place(),
                }
            }
            Phase::Behind => None,
        }
    }

    /// Returns the number of instructions of the run with which the phase ends; the largest one if it ends otherwise.
    pub(crate) fn end_instructions(&self) -> u64 {
        match self.end() {
            Some(Place::Instructions(n)) => n,
            _ => u64::MAX,
        }
    }

    /// Returns the simulated time with which the phase ends, ns; the largest one if it ends otherwise.
    pub(crate) fn end_ns(&self) -> u64 {
        match self.end() {
            Some(Place::Ns(ns)) => ns,
            _ => u64::MAX,
        }
    }

    /// Begins the next phase, after this number of instructions of the run and of ns.
    fn switch(&mut self, instructions: u64, now_ns: u64) {
        self.account(instructions);
        self.is_over = false;
        self.phase = match (self.phase, &self.plan.selection) {
            (Phase::Skipped, _) if self.plan.followed() > 0 => Phase::Followed,
            (Phase::Skipped | Phase::Followed, _) => Phase::Timed,
            (Phase::Timed, Selection::Region(_)) => Phase::Followed,
            (Phase::Timed | Phase::Behind, _) => Phase::Behind,
        };
        if self.phase == Phase::Timed {
            self.begins(instructions, now_ns);
        }
    }

    fn begins(&mut self, instructions: u64, now_ns: u64) {
        self.began.get_or_insert((instructions, now_ns));
        self.executions = self.executions.saturating_add(1);
        if self.plan.counts_from_part() {
            self.until.count_from_now();
        }
    }

    /// Notes what was done with the instructions since the last switch.
    fn account(&mut self, instructions: u64) {
        let passed = &mut self.passed[self.phase as usize];
        *passed = passed.saturating_add(instructions.saturating_sub(self.switched_at));
        self.switched_at = instructions;
    }

    /// Returns what was timed of the run, which ends after this number of instructions.
    pub(crate) fn summary(&mut self, instructions: u64) -> PartSummary {
        self.account(instructions);
        let [skipped, followed, timed, behind] = self.passed;
        PartSummary {
            skipped,
            followed,
            timed,
            behind,
            executions: self.executions,
            begin_ns: self.began.map_or(0, |(_, ns)| ns),
            ended: self.phase == Phase::Behind,
        }
    }

    /// Returns the counts of the part when `all` has been counted in the run.
    pub(crate) fn counted(&self, all: Totals) -> Totals {
        if self.phase == Phase::Timed { less(all, &self.outside) } else { self.frozen.clone() }
    }

    /// The part is left when `all` has been counted in the run.
    fn leave(&mut self, all: Totals) {
        self.frozen = less(all, &self.outside);
    }

    /// The part is entered when `all` has been counted in the run.
    fn enter(&mut self, all: Totals) {
        self.outside = less(all, &self.frozen);
    }

    /// Returns whether calls of functions matter.
    pub(crate) fn has_functions(&self) -> bool {
        let Selection::Between { from, until } = &self.plan.selection else { return false };
        [from, until].into_iter().any(|point| matches!(point, Some(Point::Function(..))))
    }

    /// The running thread has arrived at its program counter, where the function called `name` begins if there is one.
    pub(crate) fn arrives(&mut self, name: Option<&str>, guest: &Guest) {
        let cpu = guest.cpu();
        let (thread, pc, stack_pointer) = (guest.thread().tid - PID, cpu.pc, cpu.x(fxscope_aarch64::Cpu::SP));
        let returns = |visits: &Visits| visits.returned(thread, pc, stack_pointer).is_some();
        let functions = self.plan.points().map(|point| matches!(point, Some(Point::Function(..))));
        let [from_returns, until_returns] = [functions[0] && returns(&self.from), functions[1] && returns(&self.until)];
        self.leaves(thread, from_returns, until_returns, guest);
        let Some(name) = name else { return };
        let frame = Frame { address: cpu.x(30), stack_pointer };
        let is_its = |point: Option<&Point>| matches!(point, Some(Point::Function(own, _)) if own == name);
        let [from, until] = self.plan.points().map(is_its);
        self.enters(thread, frame, from, until);
    }

    /// The running thread enters or leaves a region.
    pub(crate) fn meets(&mut self, edge: Edge, name: &str, guest: &Guest) {
        let thread = guest.thread().tid - PID;
        let [from, until] = self.plan.regions().map(|own| own == Some(name));
        match edge {
            Edge::Begin => self.enters(thread, Frame::default(), from, until),
            Edge::End => self.leaves(thread, from, until, guest),
        }
    }

    /// A thread enters the function or region of the beginning (`from`), or that of the end.
    fn enters(&mut self, thread: u32, frame: Frame, from: bool, until: bool) {
        let is_before = matches!(self.phase, Phase::Skipped | Phase::Followed);
        if until && self.phase != Phase::Behind {
            self.until.enter(thread, frame);
        }
        let is_region = matches!(self.plan.selection, Selection::Region(_));
        if from && (is_before || is_region) {
            let times = self.from.enter(thread, frame);
            self.is_over |= is_before && times.is_some_and(|times| is_region || times >= self.plan.first_number());
        }
    }

    /// A thread leaves the function or region of the beginning (`from`), or that of the end.
    fn leaves(&mut self, thread: u32, from: bool, until: bool, guest: &Guest) {
        let exists = |thread: u32| guest.has_thread(PID + thread);
        let is_timed = self.phase == Phase::Timed;
        if from && self.from.leave(thread) {
            let is_region = matches!(self.plan.selection, Selection::Region(_));
            self.is_over |= is_timed && is_region && !self.from.is_inside(exists);
        }
        if until && self.until.leave(thread) {
            self.is_over |= is_timed && self.until.is_over(self.plan.last_number(), exists);
        }
    }

    /// Data are assigned to sectors before there are caches.
    pub(crate) fn assign_sectors(&mut self, data: SectorData) {
        self.sectors = data;
    }
}

impl PartPlan {
    /// Returns the instructions, or ns, that are followed before a place that is known.
    fn followed(&self) -> u64 {
        match self.warming {
            Warming::Default => DEFAULT_WARMING,
            Warming::Instructions(n) => n,
            Warming::All => u64::MAX,
            Warming::Nothing => 0,
        }
    }

    fn first_phase(&self) -> Phase {
        let follows = self.warming != Warming::Nothing;
        let begin = match &self.selection {
            Selection::Between { from: None, .. } => return Phase::Timed,
            Selection::Between { from: Some(point), .. } => point.place(),
            Selection::Region(_) => None,
        };
        match begin {
            Some(Place::Instructions(0) | Place::Ns(0)) => Phase::Timed,
            Some(Place::Instructions(n) | Place::Ns(n)) if follows && n <= self.followed() => Phase::Followed,
            None if follows => Phase::Followed,
            _ => Phase::Skipped,
        }
    }

    /// Returns the points at which the part begins and ends.
    fn points(&self) -> [Option<&Point>; 2] {
        match &self.selection {
            Selection::Between { from, until } => [from.as_ref(), until.as_ref()],
            Selection::Region(_) => [None; 2],
        }
    }

    /// Returns the regions with which the part begins (or which it is), and with which it ends.
    fn regions(&self) -> [Option<&str>; 2] {
        match &self.selection {
            Selection::Region(name) => [Some(name), None],
            Selection::Between { from, until } => [from, until].map(|point| match point {
                Some(Point::Region(name, _)) => Some(name.as_str()),
                _ => None,
            }),
        }
    }

    /// Returns the number of the execution with which the part begins.
    fn first_number(&self) -> u64 {
        match self.points()[0] {
            Some(Point::Function(_, Some(Count::OfRun(n))) | Point::Region(_, Some(Count::OfRun(n)))) => *n,
            _ => 1,
        }
    }

    /// Returns the number of the execution with which the part ends.
    fn last_number(&self) -> u64 {
        match self.points()[1] {
            Some(Point::Function(_, Some(count)) | Point::Region(_, Some(count))) => match *count {
                Count::OfRun(n) | Count::OfPart(n) => n,
            },
            _ => 1,
        }
    }

    /// Returns whether the executions of what it ends with are counted from the beginning of the part.
    fn counts_from_part(&self) -> bool {
        let of_run = |point: &Point| {
            matches!(point, Point::Function(_, Some(Count::OfRun(_))) | Point::Region(_, Some(Count::OfRun(_))))
        };
        !self.points()[1].is_some_and(of_run)
    }
}

/// Returns `all` without `part` of it. Threads without counts are left out, but for the program's first one.
fn less(all: Totals, part: &Totals) -> Totals {
    let mut rest = all;
    for (thread, counted) in part {
        if let Some(own) = rest.get_mut(thread) {
            own.counts = region::less(&own.counts, &counted.counts);
        }
    }
    rest.retain(|&thread, counted| thread == 0 || counted.counts != Counts::default());
    rest
}
