//! Dispatch: commit stack groups, rename registers, reservation stations.
//!
//! Dispatch is in order, so its time is a clock. Stations release their entries out of order: their
//! occupancy follows from releases by cycle.

mod releases;

use fxscope_calendar::Cycle;
use fxscope_machine::Spec;

use crate::bind::{Attribute, BoundUop};
use releases::Releases;

/// A reservation station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[repr(u8)]
pub enum Station {
    /// EXA, FLA, PRX.
    Rse0,
    /// EXB, FLB.
    Rse1,
    /// Address pipes.
    Rsa0,
    /// Address pipes.
    Rsa1,
    /// Branches.
    Rsbr,
}

/// Number of stations.
const STATIONS: usize = 5;

/// Packs small numbers, a byte each.
fn packed(numbers: [u32; STATIONS]) -> u64 {
    numbers.iter().enumerate().map(|(i, &n)| u64::from(n.min(255)) << (8 * i)).sum()
}

/// Release times of the last uses of a resource that is released in order.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct Ring {
    times: Box<[Cycle]>,
    next: usize,
}

impl Ring {
    fn new(n: u32) -> Ring {
        Ring { times: vec![0; n.max(1) as usize].into(), next: 0 }
    }
    /// When the next entry is free.
    #[inline(always)]
    fn free_at(&self) -> Cycle {
        self.times[self.next]
    }
    /// Takes the next entry, whose release time is not known yet. Returns its place.
    #[inline(always)]
    fn open(&mut self) -> usize {
        let place = self.next;
        self.next = if place + 1 == self.times.len() { 0 } else { place + 1 };
        place
    }
    /// The number of places from `from` to `to`.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to < from { to + self.times.len() - from } else { to - from }
    }
    /// When the entry `many` places before `place` is released.
    fn before(&self, place: usize, many: usize) -> Cycle {
        self.times[self.distance(many, place)]
    }
    /// The number of entries that are released after `t`: the last ones.
    fn after(&self, t: Cycle) -> usize {
        (1..=self.times.len()).take_while(|&many| self.before(self.next, many) > t).count()
    }
    /// The `many` entries before `place` are released no earlier than `t`, `a_cycle` per cycle.
    fn delay(&mut self, place: usize, many: usize, t: Cycle, a_cycle: u32) {
        for (cycles, back) in (0..many).map(|i| (i as u64 / u64::from(a_cycle), many - i)) {
            let entry = self.distance(back, place);
            self.times[entry] = self.times[entry].max(t + cycles);
        }
    }
    /// Takes the next entry until `until`.
    #[inline(always)]
    fn take(&mut self, until: Cycle) {
        let place = self.open();
        self.times[place] = until;
    }
}

/// The temporary operand registers (TOR): they carry a program counter to the pipe that needs it (manual 5.2, 5.4).
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct TemporaryOperandRegisters {
    /// When each is free.
    free: Box<[Cycle]>,
    /// The one that was taken last, and when.
    last: usize,
    taken: Cycle,
}

impl TemporaryOperandRegisters {
    fn new(n: u32) -> TemporaryOperandRegisters {
        TemporaryOperandRegisters { free: vec![0; n as usize].into(), last: 0, taken: 0 }
    }

    /// When one can be taken at or after `t`; one per cycle.
    #[cold]
    #[inline(never)]
    fn take(&mut self, t: Cycle) -> Cycle {
        let earliest = self.free.iter().enumerate().min_by_key(|&(_, free)| *free);
        let (last, free) = earliest.map_or((0, 0), |(i, free)| (i, *free));
        self.last = last;
        t.max(free).max(self.taken + 1)
    }

    /// It was taken at `taken` and is free again at `t`.
    fn free(&mut self, taken: Cycle, t: Cycle) {
        self.taken = taken;
        self.free[self.last] = t;
    }
}

/// The state of dispatch.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Dispatch {
    /// Cycle of the last dispatch.
    now: Cycle,
    /// Micro-operations in the open group; `width` when it is closed.
    in_group: u32,
    width: u32,
    /// Commit stack groups, as the time their last micro-operation has committed.
    groups: Ring,
    /// Place of the open group, and when the last one of its members that have committed did so.
    open_group: usize,
    committed: Cycle,
    /// Rename registers by class, as [`BoundUop::renames`] numbers them; class 0 has none.
    renames: [Ring; 4],
    rename_release: Cycle,
    /// Free entries of each station at `now`, a byte each.
    free: u64,
    /// `free` when the cycle began: what stations are chosen by.
    free_before: u64,
    /// Writes that each station still takes at `now`, a byte each.
    writes: u64,
    /// `writes` at the start of a cycle.
    all_writes: u64,
    /// Entries released after `now`, a byte for each station.
    releases: Releases,
    threshold: u32,
    /// Free entries of RSE0 or RSE1 that count as "some".
    some_free: u32,
    /// Results of the last micro-operation that may start a dependency group, as bits, and its station.
    chain: (u64, Station),
    /// When the group before the open one was dispatched.
    before: Cycle,
    tor: TemporaryOperandRegisters,
    /// Nothing may dispatch before this (synchronising instructions, flushes).
    not_before: Cycle,
}

impl Dispatch {
    /// An empty back end.
    #[must_use]
    pub fn new(spec: &Spec) -> Dispatch {
        let (w, s) = (&spec.window, &spec.stations);
        Dispatch {
            now: 0,
            in_group: w.dispatch_width,
            width: w.dispatch_width,
            groups: Ring::new(w.commit_stack / w.group_entries),
            open_group: 0,
            committed: 0,
            renames: [Ring::new(1), Ring::new(w.rename_gpr), Ring::new(w.rename_vector), Ring::new(w.rename_predicate)],
            rename_release: w.rename_release,
            free_before: 0,
            free: packed([s.rse_entries, s.rse_entries, s.rsa_entries, s.rsa_entries, s.rsbr_entries]),
            writes: 0,
            all_writes: packed([s.writes_per_cycle; STATIONS]),
            releases: Releases::default(),
            threshold: s.balance_threshold,
            some_free: s.some_free_entries,
            chain: (0, Station::Rsbr),
            before: 0,
            tor: TemporaryOperandRegisters::new(w.temporary_operand_registers),
            not_before: 0,
        }
    }

    /// The most iterations in flight of a loop that branches to its beginning after `instructions` instructions.
    #[must_use]
    pub fn iterations_in_flight(&self, instructions: usize) -> usize {
        self.groups.times.len() / instructions.div_ceil(self.width as usize).max(1)
    }

    /// Cycle of the last dispatch: nothing is dispatched earlier any more.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// When the next instructions are read from the instruction buffer at the earliest: the stages up to decode hold
    /// what follows the open group, so reading is one group ahead of it at most.
    #[inline(always)]
    #[must_use]
    pub fn reads_from(&self) -> Cycle {
        self.before + 1
    }

    /// Nothing that is not dispatched yet sends a request before this.
    #[must_use]
    pub fn lookahead(&self) -> Cycle {
        self.reads_from().max(self.not_before)
    }

    /// Moves the state `cycles` later.
    pub fn fast_forward(&mut self, cycles: Cycle) {
        self.releases.fast_forward(cycles);
        self.now += cycles;
        self.before += cycles;
        self.not_before += cycles;
        self.tor.taken += cycles;
        self.committed += cycles;
        let rings = self.renames.iter_mut().chain([&mut self.groups]).map(|ring| &mut ring.times);
        rings.chain([&mut self.tor.free]).flatten().for_each(|t| *t += cycles);
    }

    /// Nothing more is dispatched before `t`.
    pub fn hold_until(&mut self, t: Cycle) {
        self.not_before = self.not_before.max(t);
        self.in_group = self.width;
    }

    /// Dispatches a micro-operation that can be decoded at `decodable`. Returns the cycle, the station of its
    /// first flow, and whether it opens a group.
    #[inline(always)]
    pub fn dispatch(&mut self, uop: &BoundUop, decodable: Cycle) -> (Cycle, Station, bool) {
        let mut t = self.now.max(decodable).max(self.not_before);
        // A group is what is decoded in one cycle; its members may have to wait for registers and stations.
        let opens = self.in_group >= self.width || uop.opens_group || t > self.now;
        for class in uop.renames {
            if class == 0 {
                break;
            }
            t = t.max(self.renames[usize::from(class % 4)].free_at());
        }
        if opens {
            // A group is free again when its last member has committed.
            self.groups.times[self.open_group] = self.committed + 1;
            self.before = self.now;
            t = t.max(self.now + 1).max(self.groups.free_at());
            self.open_group = self.groups.open();
            self.in_group = 0;
        }
        if uop.takes_tor {
            t = self.tor.take(t);
        }
        self.advance(t);
        let station = self.place(uop);
        self.in_group += 1;
        self.chain = (uop.chain_dsts, station);
        if uop.closes_group {
            self.in_group = self.width;
        }
        (self.now, station, opens)
    }

    /// The operation that was dispatched last reads its temporary operand register at `t`, which frees it.
    #[cold]
    #[inline(never)]
    pub fn free_tor(&mut self, t: Cycle) {
        self.tor.free(self.now, t);
    }

    /// Time advances to `t`: entries released until then are free.
    #[inline(always)]
    fn advance(&mut self, t: Cycle) {
        if t == self.now {
            return;
        }
        self.writes = self.all_writes;
        self.free += self.releases.pass(self.now, t);
        self.free_before = self.free;
        self.now = t;
    }

    /// Chooses a station with a free entry; waits for one if there is none.
    #[inline(always)]
    fn place(&mut self, uop: &BoundUop) -> Station {
        if uop.attribute == Attribute::None {
            return Station::Rsbr;
        }
        let wanted = self.wanted(uop);
        if self.takes(uop, wanted) { wanted } else { self.place_later(uop) }
    }

    #[cold]
    #[inline(never)]
    fn place_later(&mut self, uop: &BoundUop) -> Station {
        loop {
            self.advance(self.now + 1);
            let wanted = self.wanted(uop);
            if self.takes(uop, wanted) {
                return wanted;
            }
            self.skip_to_release();
        }
    }

    /// There was no room in a new cycle: skips to the cycle before the next release.
    #[inline(always)]
    fn skip_to_release(&mut self) {
        self.now = self.releases.next(self.now) - 1;
    }

    /// Takes the entries that an operation needs, one of them in `station`, if all are available.
    #[inline(always)]
    fn takes(&mut self, uop: &BoundUop, station: Station) -> bool {
        if uop.data_flow { self.enter_with_data(station) } else { self.enter(station) }
    }

    /// Takes an entry of a station if one is free and the station accepts another write in this cycle.
    #[inline(always)]
    fn enter(&mut self, station: Station) -> bool {
        let one = 1 << (8 * station as u64);
        let room = self.free & (one * 0xff) != 0 && self.writes & (one * 0xff) != 0;
        if room {
            self.free -= one;
            self.writes -= one;
        }
        room
    }

    /// The address flow of a store and its data flow, which takes an entry of RSE0, enter together (manual 7.2.2).
    #[inline(always)]
    fn enter_with_data(&mut self, station: Station) -> bool {
        const DATA: u64 = 1 << (8 * Station::Rse0 as u64);
        let room = self.free & (DATA * 0xff) != 0 && self.writes & (DATA * 0xff) != 0 && self.enter(station);
        if room {
            self.free -= DATA;
            self.writes -= DATA;
        }
        room
    }

    /// The station an operation goes to as things stand.
    #[inline(always)]
    fn wanted(&self, uop: &BoundUop) -> Station {
        match self.follows(uop) {
            Some(station) => station,
            None => self.choose(uop.attribute),
        }
    }

    /// An integer operation that needs the result of the one right before it goes to the same station (manual 5.3).
    #[inline(always)]
    fn follows(&self, uop: &BoundUop) -> Option<Station> {
        let (results, station) = self.chain;
        if results & uop.chain_srcs == 0 || !uop.chains {
            return None;
        }
        let address = matches!(station, Station::Rsa0 | Station::Rsa1);
        let suits = uop.attribute == Attribute::Rsx || (uop.attribute == Attribute::Rse && !address);
        suits.then_some(station)
    }

    /// Entries of a station that were free when the cycle began: all slots of a decode window are decided together.
    #[inline(always)]
    fn free(&self, s: Station) -> u32 {
        (self.free_before >> (8 * s as u64)) as u32 & 0xff
    }

    /// The station an operation goes to (manual 5.2 tables 5-2, 5-4, 5-5 and figure 5-3).
    #[inline(always)]
    fn choose(&self, attribute: Attribute) -> Station {
        match attribute {
            Attribute::Rse0 => Station::Rse0,
            Attribute::Rse1 => Station::Rse1,
            Attribute::None | Attribute::Rsbr => Station::Rsbr,
            Attribute::Rse => self.by_slot(Station::Rse0, Station::Rse1, self.some_free),
            // Either of these serves both address pipes: one entry is enough.
            Attribute::Rsa => self.by_slot(Station::Rsa0, Station::Rsa1, 1),
            Attribute::Rsx => self.choose_rsx(),
        }
    }

    /// Even slots go to the first station, odd slots to the second, unless only one has `some` free entries (condition
    /// 5 of the manual).
    #[inline(always)]
    fn by_slot(&self, even: Station, odd: Station, some: u32) -> Station {
        match (self.free(even) >= some, self.free(odd) >= some) {
            (true, false) => even,
            (false, true) => odd,
            _ if self.in_group.is_multiple_of(2) => even,
            _ => odd,
        }
    }

    #[inline(never)]
    fn choose_rsx(&self) -> Station {
        let (e0, e1) = (self.free(Station::Rse0), self.free(Station::Rse1));
        let (a0, a1) = (self.free(Station::Rsa0), self.free(Station::Rsa1));
        let (em, ef) = if e0 >= e1 { (Station::Rse0, Station::Rse1) } else { (Station::Rse1, Station::Rse0) };
        let (am, af) = if a0 >= a1 { (Station::Rsa0, Station::Rsa1) } else { (Station::Rsa1, Station::Rsa0) };
        let (e, a) = (e0 + e1, a0 + a1);
        let only_e = (a == 0 && e0 > 0 && e1 > 0) || e >= a + self.threshold;
        let only_a = (e == 0 && a0 > 0 && a1 > 0) || a >= e + self.threshold;
        let slot = self.in_group % 4;
        match (only_e, only_a) {
            (true, false) if e0.abs_diff(e1) >= self.threshold => em,
            (true, false) => [em, ef][slot as usize % 2],
            (false, true) => [am, af][slot as usize % 2],
            _ if e0.max(e1) >= a0.max(a1) => [em, ef, am, af][slot as usize],
            _ => [am, af, em, ef][slot as usize],
        }
    }

    /// Closes the open group: a predicted-taken branch is its last member.
    #[inline(always)]
    pub fn close_group(&mut self) {
        self.in_group = self.width;
    }

    /// Releases an entry of a station at `t`.
    #[inline(always)]
    pub fn release(&mut self, station: Station, t: Cycle) {
        self.releases.add(self.now, t.max(self.now + 1), 1 << (8 * station as u64));
    }

    /// Moves the release of an entry from `before` to `after`.
    pub fn move_release(&mut self, station: Station, before: Cycle, after: Cycle) {
        if self.releases.take_back(self.now, before, 1 << (8 * station as u64)) {
            self.release(station, after);
        }
    }

    /// The place of the open group on the commit stack: the group of the micro-operation that was dispatched last.
    #[inline(always)]
    pub(crate) fn open_group(&self) -> u16 {
        self.open_group as u16
    }

    /// A micro-operation of the group at place `group` commits no earlier than `t`, and those behind it follow, a group
    /// a cycle. Returns how many cycles after it the one that was dispatched last commits at the earliest.
    pub(crate) fn delay_commits(&mut self, group: u16, t: Cycle) -> Cycle {
        let group = usize::from(group);
        // The last commit of the previous group: registers that are released later belong to this group and younger
        // ones.
        let before = self.groups.before(group, 1).saturating_sub(1);
        for ring in &mut self.renames[1..] {
            let many = ring.after(before + self.rename_release);
            ring.delay(ring.next, many, t + self.rename_release, self.width);
        }
        let behind = self.groups.distance(group, self.open_group);
        self.groups.delay(self.open_group, behind, t + 1, 1);
        behind as u64
    }

    /// The micro-operation commits at `t`: its rename registers are free some cycles later.
    #[inline(always)]
    pub fn committed(&mut self, uop: &BoundUop, t: Cycle) {
        self.committed = t;
        for class in uop.renames {
            if class == 0 {
                break;
            }
            self.renames[usize::from(class % 4)].take(t + self.rename_release);
        }
    }
}
