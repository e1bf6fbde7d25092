//! The cores of a CMG take turns: what those that wait have to do about lines that others take, and from when on they will
//! ask for anything again.

use fxscope_calendar::Cycle;

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

/// The cores of a CMG that wait for their turns.
pub struct Turns {
    /// For each core, in the order in which they were left.
    notices: Box<[Vec<Notice>]>,
    /// How many notices there are in all.
    unread: usize,
    /// For each core, before when it will ask for nothing; [`Cycle::MAX`] if it runs or has nothing to do.
    from: Box<[Cycle]>,
}

impl Turns {
    /// None of so many cores waits.
    #[must_use]
    pub fn new(cores: usize) -> Turns {
        Turns { notices: vec![Vec::new(); cores].into(), unread: 0, from: vec![Cycle::MAX; cores].into() }
    }

    /// Core number `core` will ask for nothing before `from`; [`Cycle::MAX`] when it runs or has nothing to do.
    pub fn set(&mut self, core: usize, from: Cycle) {
        self.from[core] = from;
    }

    /// No core that waits will ask for anything before this.
    #[must_use]
    pub fn earliest(&self) -> Cycle {
        self.from.iter().copied().min().unwrap_or(Cycle::MAX)
    }

    /// Leaves a notice with the cores whose bits are set.
    pub fn notify(&mut self, cores: u64, notice: Notice) {
        for core in (0..self.notices.len()).filter(|&core| cores >> core & 1 == 1) {
            self.notices[core].push(notice);
            self.unread += 1;
        }
    }

    /// A core asks for a line itself: claims of it that it has not heard of yet need not be told. Returns whether there
    /// was one.
    #[inline(always)]
    pub fn withdraw(&mut self, core: usize, line: u64) -> bool {
        self.unread > 0 && self.withdraw_some(core, line)
    }

    /// The same, when there are notices.
    #[inline(never)]
    fn withdraw_some(&mut self, core: usize, line: u64) -> bool {
        let notices = &mut self.notices[core];
        let before = notices.len();
        if before > 0 {
            notices.retain(|notice| notice.line != line || notice.keeps);
        }
        let withdrawn = before - notices.len();
        self.unread -= withdrawn;
        withdrawn > 0
    }

    /// The first notice of a core that it gets to know by `now`.
    pub fn next(&mut self, core: usize, now: Cycle) -> Option<Notice> {
        let notices = &mut self.notices[core];
        let known = notices.iter().position(|notice| notice.at <= now)?;
        self.unread -= 1;
        Some(notices.remove(known))
    }
}
