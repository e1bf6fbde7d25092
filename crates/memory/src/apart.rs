//! CMGs side by side, on several threads of the host.
//!
//! Most of what cores do concerns their own CMG alone. So the chip can be taken apart: each part has some CMGs, with which
//! their cores go on as with the whole chip. What concerns others, too (a line of another CMG's memory, one that several CMGs
//! hold, a page that gets its frame), waits until all parts have come to such a point, look in, or are at rest; then those
//! that wait have the whole chip, one after the other in the order of their CMGs, and all go on side by side. So
//! nothing hangs on how fast the host's threads are: the same parts doing the same give the same results.

use std::num::NonZero;
use std::ops::{Index, IndexMut, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fxscope_calendar::Cycle;

use crate::chip::Chip;
use crate::cmg::Cmg;
use crate::frames::Frames;
use crate::ring::Ring;

/// The CMGs at hand: all of them, or those of a part.
#[derive(Default)]
pub(crate) struct Cmgs {
    list: Vec<Cmg>,
    first: usize,
}

impl Cmgs {
    fn from(first: usize, cmgs: impl IntoIterator<Item = Cmg>) -> Cmgs {
        Cmgs { list: cmgs.into_iter().collect(), first }
    }
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cmg> {
        self.list.iter()
    }
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Cmg> {
        self.list.iter_mut()
    }
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Cmg> {
        self.list.get_mut(number.wrapping_sub(self.first))
    }
}

impl FromIterator<Cmg> for Cmgs {
    fn from_iter<I: IntoIterator<Item = Cmg>>(cmgs: I) -> Cmgs {
        Cmgs::from(0, cmgs)
    }
}

impl Index<usize> for Cmgs {
    type Output = Cmg;

    #[inline(always)]
    fn index(&self, number: usize) -> &Cmg {
        &self.list[number - self.first]
    }
}

impl IndexMut<usize> for Cmgs {
    #[inline(always)]
    fn index_mut(&mut self, number: usize) -> &mut Cmg {
        &mut self.list[number - self.first]
    }
}

/// What a part has besides its CMGs.
pub(crate) struct Beside {
    meeting: Arc<Meeting>,
    part: usize,
    /// No core of another CMG will ask for anything before this.
    pub(crate) others_from: Cycle,
    pub(crate) owed: Owed,
}

/// What a part has done to other CMGs that nobody waits for: they hear of it when the chip is whole.
#[derive(Default)]
pub(crate) struct Owed {
    /// Lines that have left an L2 of which their memory is not.
    pub(crate) returned: Vec<u64>,
    /// Lines that go from a CMG to another one's memory, and when they leave.
    pub(crate) writes: Vec<(usize, u64, Cycle)>,
}

/// Some CMGs of a chip that has been taken apart.
pub struct Part {
    chip: Box<Chip>,
    guard: Guard,
}

/// What is left of a part that has done its work.
pub struct Rest {
    claims: u64,
    owed: Owed,
    _guard: Guard,
}

/// A chip that has been taken apart.
pub struct Apart {
    meeting: Arc<Meeting>,
    whole: Box<Chip>,
}

impl Chip {
    /// Takes the chip apart, with these CMGs in each part: each in one, in order. All cores have left it
    /// ([`crate::Hierarchy::leave_chip`]).
    #[must_use]
    pub fn take_apart(mut self: Box<Chip>, cmgs: &[Range<usize>]) -> (Apart, Vec<Part>) {
        let others_from = self.cmgs.iter().map(|cmg| cmg.turns.earliest()).min().unwrap_or(Cycle::MAX);
        let meeting = Arc::new(Meeting::new(self.whole(), cmgs));
        let part = |part: usize| {
            let (cmgs, frames) = meeting.enter().goes(part);
            let beside = Beside { meeting: Arc::clone(&meeting), part, others_from, owed: Owed::default() };
            let chip = Chip {
                cmgs,
                ring: Ring::default(),
                frames,
                beside: Some(Box::new(beside)),
                several: true,
                claims: 0,
                shape: self.shape,
            };
            Part { chip: Box::new(chip), guard: Guard(Arc::clone(&meeting)) }
        };
        let parts = (0..cmgs.len()).map(part).collect();
        (Apart { meeting, whole: self }, parts)
    }

    /// Does `what` with the whole chip: at once, or when it is this part's turn.
    #[inline(always)]
    pub(crate) fn together<R>(&mut self, what: impl FnOnce(&mut Chip) -> R) -> R {
        match self.beside.take() {
            None => what(self),
            Some(beside) => self.meet(beside, what),
        }
    }

    #[cold]
    #[inline(never)]
    fn meet<R>(&mut self, mut beside: Box<Beside>, what: impl FnOnce(&mut Chip) -> R) -> R {
        self.frames = Arc::default();
        let own = std::mem::take(&mut self.cmgs);
        self.put_together(beside.meeting.gather(beside.part, own));
        self.settle_up(&mut beside.owed);
        let result = what(self);
        (self.cmgs, self.frames) = beside.meeting.part(beside.part, self.whole());
        self.beside = Some(beside);
        result
    }

    /// A part of a chip waits here until all others have come here, too, or wait for the whole chip, or are at rest, and those
    /// that wait have had it. The more often, the sooner they have.
    pub fn look_in(&mut self) {
        let Some(beside) = self.beside.take() else { return };
        self.frames = Arc::default();
        let own = std::mem::take(&mut self.cmgs);
        (self.cmgs, self.frames) = beside.meeting.look_in(beside.part, own);
        self.beside = Some(beside);
    }

    /// Other CMGs hear of what a part has done.
    fn settle_up(&mut self, owed: &mut Owed) {
        for line in owed.returned.drain(..) {
            let home = self.home(line);
            self.cmgs[home].abroad.remove(line);
        }
        for (cmg, line, t) in owed.writes.drain(..) {
            self.write_from_outside(cmg, line, t);
        }
    }

    /// All that is divided, which this does not have any more.
    fn whole(&mut self) -> Whole {
        Whole {
            cmgs: std::mem::take(&mut self.cmgs),
            ring: std::mem::take(&mut self.ring),
            frames: std::mem::take(&mut self.frames),
        }
    }

    fn put_together(&mut self, whole: Whole) {
        (self.cmgs, self.ring, self.frames) = (whole.cmgs, whole.ring, whole.frames);
    }
}

impl Part {
    /// The chip as the cores of this part's CMGs have it, and what its [rest](Part::rest) needs.
    pub fn begin(self) -> (Box<Chip>, impl FnOnce(Box<Chip>) -> Rest) {
        let guard = self.guard;
        (self.chip, move |chip| Part { chip, guard }.rest())
    }

    /// The cores of these CMGs have done what they were to do.
    fn rest(mut self) -> Rest {
        self.chip.frames = Arc::default();
        let beside = self.chip.beside.take().expect("a part is beside others");
        beside.meeting.rest(beside.part, std::mem::take(&mut self.chip.cmgs));
        Rest { claims: self.chip.claims, owed: beside.owed, _guard: self.guard }
    }
}

impl Apart {
    /// The chip, after all its parts have come to rest, and how often one has waited for it meanwhile.
    #[must_use]
    pub fn put_together(self, rests: Vec<Rest>) -> (Box<Chip>, u64) {
        let mut chip = self.whole;
        let (whole, waits) = self.meeting.all();
        chip.put_together(whole);
        for mut rest in rests {
            chip.settle_up(&mut rest.owed);
            chip.claims += rest.claims;
        }
        // Parts have told their own CMGs of time only.
        chip.advance(Cycle::MAX);
        (chip, waits)
    }
}

/// All that is divided.
struct Whole {
    cmgs: Cmgs,
    ring: Ring,
    frames: Arc<Frames>,
}

/// Where parts meet.
struct Meeting {
    hall: Mutex<Hall>,
    changed: Condvar,
    /// Counts what has changed in the hall.
    changes: AtomicU64,
    /// The host has a processor for each part: those that wait look for changes for a while before they sleep.
    looks: bool,
    /// The CMGs of each part.
    parts: Box<[Range<usize>]>,
}

/// What lies there, and who is where.
struct Hall {
    /// The CMGs of parts that have come, by part.
    cmgs: Vec<Option<Cmgs>>,
    /// Unless somebody has the whole chip.
    shared: Option<(Ring, Arc<Frames>)>,
    /// Parts that have not come.
    running: usize,
    /// Those that wait for the whole chip, a bit for each.
    waiting: u64,
    /// Those that have come and will go on.
    staying: usize,
    /// How often all have gone on.
    rounds: u64,
    /// How often one has waited for the whole chip.
    waits: u64,
    /// A part's thread has panicked: nobody need wait any more.
    broken: bool,
}

impl Hall {
    fn whole(&mut self) -> Whole {
        let (ring, frames) = self.shared.take().expect("nobody else has it");
        let cmgs = self.cmgs.iter_mut().flat_map(|cmgs| cmgs.take().expect("all have come").list).collect();
        Whole { cmgs, ring, frames }
    }

    fn lay_down(&mut self, mut whole: Whole, parts: &[Range<usize>]) {
        let mut list = whole.cmgs.list.drain(..);
        self.cmgs = parts.iter().map(|part| Cmgs::from(part.start, list.by_ref().take(part.len()))).map(Some).collect();
        self.shared = Some((whole.ring, whole.frames));
    }

    fn comes(&mut self, part: usize, cmgs: Cmgs) {
        self.cmgs[part] = Some(cmgs);
        self.running -= 1;
    }

    /// All have come: unless somebody waits for the whole chip, those that stay go on.
    fn goes_on(&mut self) {
        if self.running == 0 && self.waiting == 0 && self.shared.is_some() {
            self.running = std::mem::take(&mut self.staying);
            self.rounds += 1;
        }
    }

    fn goes(&mut self, part: usize) -> (Cmgs, Arc<Frames>) {
        let (_, frames) = self.shared.as_ref().expect("nobody has it");
        (self.cmgs[part].take().expect("it has come"), Arc::clone(frames))
    }
}

impl Meeting {
    /// How often those that wait look for changes before they sleep: for longer than parts mostly differ.
    const LOOKS: u32 = 4_000;

    fn new(whole: Whole, parts: &[Range<usize>]) -> Meeting {
        let mut hall = Hall {
            cmgs: Vec::new(),
            shared: None,
            running: parts.len(),
            waiting: 0,
            staying: 0,
            rounds: 0,
            waits: 0,
            broken: false,
        };
        hall.lay_down(whole, parts);
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let looks = processors >= parts.len();
        Meeting {
            hall: Mutex::new(hall),
            changed: Condvar::new(),
            changes: AtomicU64::new(0),
            looks,
            parts: parts.into(),
        }
    }

    fn enter(&self) -> MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those who wait have to look anew.
    fn tell(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    fn wait<'a>(&'a self, mut hall: MutexGuard<'a, Hall>, until: impl Fn(&Hall) -> bool) -> MutexGuard<'a, Hall> {
        let mut looks = if self.looks { Meeting::LOOKS } else { 0 };
        while !until(&hall) {
            assert!(!hall.broken, "the thread of another CMG has panicked");
            if looks == 0 {
                hall = self.changed.wait(hall).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let seen = self.changes.load(Ordering::Acquire);
            drop(hall);
            while looks > 0 && self.changes.load(Ordering::Acquire) == seen {
                std::hint::spin_loop();
                looks -= 1;
            }
            hall = self.enter();
        }
        hall
    }

    /// A part gives its CMGs and waits until it has the whole chip.
    fn gather(&self, part: usize, own: Cmgs) -> Whole {
        let mut hall = self.enter();
        hall.comes(part, own);
        hall.waiting |= 1 << part;
        hall.waits += 1;
        hall.staying += 1;
        if hall.running == 0 {
            self.tell();
        }
        let next = |hall: &Hall| hall.waiting.trailing_zeros() as usize == part && hall.shared.is_some();
        let mut hall = self.wait(hall, |hall| hall.running == 0 && next(hall));
        hall.waiting &= !(1 << part);
        hall.whole()
    }

    /// A part has had the whole chip, and goes on with its own CMGs when all that wait have had it.
    fn part(&self, part: usize, whole: Whole) -> (Cmgs, Arc<Frames>) {
        let mut hall = self.enter();
        hall.lay_down(whole, &self.parts);
        let round = hall.rounds;
        hall.goes_on();
        self.tell();
        self.wait(hall, |hall| hall.rounds > round).goes(part)
    }

    /// A part looks whether others wait for the whole chip, and goes on when they have had it.
    fn look_in(&self, part: usize, own: Cmgs) -> (Cmgs, Arc<Frames>) {
        let mut hall = self.enter();
        hall.comes(part, own);
        hall.staying += 1;
        let round = hall.rounds;
        if hall.running == 0 {
            hall.goes_on();
            self.tell();
        }
        self.wait(hall, |hall| hall.rounds > round).goes(part)
    }

    /// A part has done its work.
    fn rest(&self, part: usize, own: Cmgs) {
        let mut hall = self.enter();
        hall.comes(part, own);
        if hall.running == 0 {
            hall.goes_on();
            self.tell();
        }
    }

    /// All, after all parts have come to rest, and how often one has waited for the whole chip.
    fn all(&self) -> (Whole, u64) {
        let mut hall = self.enter();
        (hall.whole(), hall.waits)
    }
}

/// Lets nobody wait for a thread that has panicked.
struct Guard(Arc<Meeting>);

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.enter().broken = true;
            self.0.tell();
        }
    }
}
