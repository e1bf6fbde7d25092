//! The cores of a chip take turns: what those that wait have to do about lines that others take, and from when on they
//! will ask for anything again.

use fxscope_base::Cycle;

use crate::chip::Seat;

/// Another cache takes a line that this core holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The line.
    pub line: u64,
    /// When the core gets to know it. Up to then it uses its copy as before.
    pub at: Cycle,
    /// Whether it keeps a copy, which it must not write without asking.
    pub keeps: bool,
}

/// The cores that wait for their turns.
#[derive(Default)]
pub struct Turns {
    cores_per_cmg: usize,
    /// For each core, CMG by CMG, in the order in which they were left.
    notices: Box<[Vec<Notice>]>,
    /// How many notices there are in all.
    unread: usize,
    /// For each core, before when it will ask for nothing; [`Cycle::MAX`] if it runs or has nothing to do.
    from: Box<[Cycle]>,
    /// More than one core has had a turn.
    several: bool,
    /// Claims on lines of other cores so far.
    claims: u64,
}

impl Turns {
    /// None of so many cores waits.
    #[must_use]
    pub fn new(cmgs: usize, cores_per_cmg: usize) -> Turns {
        let cores = cmgs * cores_per_cmg;
        Turns {
            cores_per_cmg,
            notices: vec![Vec::new(); cores].into(),
            unread: 0,
            from: vec![Cycle::MAX; cores].into(),
            several: false,
            claims: 0,
        }
    }

    fn place(&self, seat: Seat) -> usize {
        seat.cmg * self.cores_per_cmg + seat.core
    }

    /// The core at `seat` will ask for nothing before `from`; [`Cycle::MAX`] when it runs or has nothing to do.
    pub fn set(&mut self, seat: Seat, from: Cycle) {
        let place = self.place(seat);
        self.from[place] = from;
        self.several |= from != Cycle::MAX;
    }

    /// No core that waits will ask for anything before this.
    #[must_use]
    pub fn earliest(&self) -> Cycle {
        self.from.iter().copied().min().unwrap_or(Cycle::MAX)
    }

    /// Whether more than one core has had a turn.
    #[inline(always)]
    #[must_use]
    pub fn several(&self) -> bool {
        self.several
    }

    /// Claims on lines of other cores so far: the core that runs takes lines from others while this grows.
    #[inline(always)]
    #[must_use]
    pub fn claims(&self) -> u64 {
        self.claims
    }

    /// Leaves a notice with the cores of a CMG whose bits are set, from whom a line is claimed.
    pub fn claim(&mut self, cmg: usize, cores: u64, notice: Notice) {
        self.claims += u64::from(cores.count_ones());
        self.notify(cmg, cores, notice);
    }

    /// Leaves a notice with the cores of a CMG whose bits are set.
    pub fn notify(&mut self, cmg: usize, cores: u64, notice: Notice) {
        for core in (0..self.cores_per_cmg).filter(|&core| cores >> core & 1 == 1) {
            let place = self.place(Seat { cmg, core });
            self.notices[place].push(notice);
            self.unread += 1;
        }
    }

    /// A core asks for a line itself: claims of it that it has not heard of yet need not be told. Returns whether there
    /// was one.
    #[inline(always)]
    pub fn withdraw(&mut self, seat: Seat, line: u64) -> bool {
        self.unread > 0 && self.withdraw_some(seat, line)
    }

    /// The same, when there are notices.
    #[inline(never)]
    fn withdraw_some(&mut self, seat: Seat, line: u64) -> bool {
        let place = self.place(seat);
        let Some(notices) = self.notices.get_mut(place) else { return false };
        let before = notices.len();
        if before > 0 {
            notices.retain(|notice| notice.line != line || notice.keeps);
        }
        let withdrawn = before - notices.len();
        self.unread -= withdrawn;
        withdrawn > 0
    }

    /// The first notice of a core that it gets to know by `now`.
    pub fn next(&mut self, seat: Seat, now: Cycle) -> Option<Notice> {
        let place = self.place(seat);
        let notices = self.notices.get_mut(place)?;
        let known = notices.iter().position(|notice| notice.at <= now)?;
        self.unread -= 1;
        Some(notices.remove(known))
    }
}
