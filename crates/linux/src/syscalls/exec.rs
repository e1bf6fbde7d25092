//! `execve`: replaces the running program.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::rc::Rc;

use fxscope_aarch64::Cpu;
use fxscope_guestmem::SpaceId;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::files::{open, open_simulated};
use super::{Args, Result};
use crate::abi::content::{Content, ProgramFile};
use crate::abi::elf::{HEADER, Image, Role};
use crate::abi::layout::DEFAULT_STACK;
use crate::abi::load::{Arguments, Ready, prepare};
use crate::end::End;
use crate::fs::files::{AT_FDCWD, OpenFile};
use crate::fs::vfs::Origin;
use crate::fs::vfs::access::Denied;
use crate::fs::vfs::commands;
use crate::fs::vfs::resolve::{Last, Target, path_of, resolve};
use crate::fs::vfs::tree::{Kind, Node};
use crate::hwpfctl::{self, Call};
use crate::ipc::futex::thread_ends;
use crate::kernel::Kernel;
use crate::mm::address_space::AddressSpace;
use crate::mm::mapped::MappedFiles;
use crate::mm::pages;
use crate::mm::user;
use crate::process::Limit;
use crate::sched::cpus::allows;
use crate::signal::{AltStack, SIG_DFL, SIG_IGN};
use crate::start_error::StartError;
use crate::thread::name_of;

/// Maximum nesting of scripts as interpreters of scripts (Linux's limit).
const SCRIPTS: usize = 5;

/// Descriptors of standard output and standard error.
const STDOUT: i32 = 1;
const STDERR: i32 = 2;

/// Maximum number of significant bytes in a script's first line.
const LINE: usize = 256;

/// Arguments, or variables as `NAME=value`.
type Words = Vec<Vec<u8>>;

/// Returns the bytes that arguments and variables may take together, including their pointers: a quarter of the stack, and at
/// most 6 MiB (`execve(2)`).
fn argument_room(k: &Kernel<'_>) -> u64 {
    (k.process.limits[Limit::STACK].soft / 4).clamp(128 << 10, 6 << 20)
}

/// Reads an array of pointers to strings, terminated by a null pointer. Their size is deducted from `room`.
fn strings(k: &mut Kernel<'_>, pointer: u64, room: &mut u64) -> std::result::Result<Words, Errno> {
    let mut list = Vec::new();
    if pointer == 0 {
        return Ok(list);
    }
    loop {
        let at: u64 = user::read(k.mem, pointer.wrapping_add(8 * list.len() as u64))?;
        if at == 0 {
            return Ok(list);
        }
        let text = user::long_string(k.mem, at)?;
        *room = room.checked_sub(text.len() as u64 + 1 + 8).ok_or(Errno::TOOBIG)?;
        list.push(text);
    }
}

/// A program's resolved path, and its file.
struct Found {
    path: Vec<u8>,
    file: ProgramFile,
}

/// Opens a program.
fn find(k: &mut Kernel<'_>, dir: i32, path: &[u8]) -> std::result::Result<Found, Errno> {
    let file = open(k, dir, path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
    let status = rustix::fs::fstat(&file.host)?;
    if !FileType::from_raw_mode(status.st_mode).is_file() || status.st_mode & 0o111 == 0 {
        return Err(Errno::ACCESS);
    }
    k.system.shared_files.flush(k.mem, file.host.as_fd())?;
    // A file in memory or one that has been deleted: as its link in `/proc` shows it.
    let shown = || k.process.files.shown_path(&file);
    let real = path_of(file.host.as_fd()).unwrap_or_else(shown);
    let is_host = file.origin == Origin::Host;
    let file = program_file(k, file)?;
    if is_host && commands::replaces(&real, Content::File(&file).start(HEADER)) {
        let node = Node { path: real.clone(), kind: Kind::Substitute };
        let file = program_file(k, open_simulated(k, node, OFlags::RDONLY)?)?;
        return Ok(Found { path: real, file });
    }
    Ok(Found { path: real, file })
}

/// Returns an open file as that of a program.
fn program_file(k: &Kernel<'_>, file: OpenFile) -> std::result::Result<ProgramFile, Errno> {
    let file = ProgramFile::of(std::fs::File::from(file.host), k.system.platform.memory_bytes);
    file.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
}

/// Returns interpreter and argument of a script's first line; `None`: it is not a script.
fn interpreter(content: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let line = content.strip_prefix(b"#!")?;
    let line = &line[..line.len().min(LINE)];
    let line = line.split(|&b| b == b'\n').next()?.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let argument = line[end..].trim_ascii();
    Some((line[..end].to_vec(), (!argument.is_empty()).then(|| argument.to_vec())))
}

pub(super) fn execve(k: &mut Kernel<'_>, a: &Args) -> Result {
    exec(k, AT_FDCWD, [a[0], a[1], a[2]], 0)
}

pub(super) fn execveat(k: &mut Kernel<'_>, a: &Args) -> Result {
    exec(k, a[0] as i32, [a[1], a[2], a[3]], a[4])
}

fn exec(k: &mut Kernel<'_>, dir: i32, [path, args, env]: [u64; 3], flags: u64) -> Result {
    const EMPTY_PATH: u64 = 0x1000;
    let mut name = user::string(k.mem, path)?;
    let mut room = argument_room(k);
    let (args, env) = (strings(k, args, &mut room)?, strings(k, env, &mut room)?);
    if name.is_empty() && flags & EMPTY_PATH != 0 {
        name = format!("/proc/self/fd/{dir}").into_bytes();
    }
    if is_command(k, dir, &name) {
        return hwpfctl(k, &args, env);
    }
    execute(k, dir, name, args, env)
}

/// Executes the program, or the script, at a path.
fn execute(k: &mut Kernel<'_>, dir: i32, mut name: Vec<u8>, mut args: Words, env: Words) -> Result {
    let mut found = find(k, dir, &name)?;
    for _ in 0..SCRIPTS {
        let Some((program, argument)) = interpreter(Content::File(&found.file).start(LINE as u64)) else { break };
        let given = args.split_off(args.len().min(1));
        args = std::iter::once(program.clone()).chain(argument).chain([name]).chain(given).collect();
        found = find(k, AT_FDCWD, &program)?;
        name = program;
    }
    let stack_bytes = match k.process.limits[Limit::STACK].soft {
        Limit::INFINITY => DEFAULT_STACK,
        bytes => bytes,
    };
    let env = pages::translated(env, &k.process.files.program.env);
    let arguments = Arguments { program: name, args, env, stack_bytes };
    replace(k, &found, arguments)
}

/// Returns whether a path leads to a command that the simulator implements.
fn is_command(k: &Kernel<'_>, dir: i32, name: &[u8]) -> bool {
    matches!(resolve(k, dir, name, Last::Follow), Ok(Target::Simulated(Node { kind: Kind::Command, .. })))
}

/// `hwpfctl`: sets the prefetch register and executes the command after its options, which is searched for as shells do.
fn hwpfctl(k: &mut Kernel<'_>, mut args: &[Vec<u8>], env: Words) -> Result {
    let (settings, command) = loop {
        let (settings, command) = match hwpfctl::parse(args.get(1..).unwrap_or_default()) {
            Ok(Call::Set(settings, command)) => (settings, command),
            Ok(Call::Help) => {
                print(k, STDOUT, hwpfctl::HELP);
                return end(k, 0);
            }
            Err(what) => return fail(k, 1, &what),
        };
        set_prefetch(k, &settings);
        match command.first() {
            Some(name) if candidates(name, &env).iter().any(|path| is_command(k, AT_FDCWD, path)) => args = command,
            _ => break (settings, command),
        }
    };
    let Some(program) = command.first() else {
        if settings.stream_detect.valid || args.len() == 1 {
            return fail(k, 1, "no command given; hwpfctl --help shows how to call it");
        }
        reset_prefetch(k);
        return end(k, 0);
    };
    let mut error = Errno::NOENT;
    for path in candidates(program, &env) {
        match execute(k, AT_FDCWD, path, command.to_vec(), env.clone()) {
            Ok(value) => return Ok(value),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(other) => error = other,
        }
    }
    let status = if error == Errno::NOENT { 127 } else { 126 };
    let what = std::io::Error::from(error);
    fail(k, status, &format!("cannot execute {}: {what}", String::from_utf8_lossy(program)))
}

/// Sets the register of the thread's core and prints what the options request.
fn set_prefetch(k: &mut Kernel<'_>, settings: &hwpfctl::Settings) {
    for note in &settings.notes {
        print(k, STDERR, &format!("hwpfctl: {note}\n"));
    }
    let before = k.thread.cpu.hpc.stream_detect();
    k.thread.cpu.hpc.set_stream_detect(settings.stream_detect.into());
    if settings.verbose {
        let (before, now) = (hwpfctl::describe(before.into()), hwpfctl::describe(settings.stream_detect));
        print(k, STDOUT, &format!("hwpfctl: before: {before}\nhwpfctl: now:    {now}\n"));
    }
}

/// Resets, without a command, all cores that the process may run on to the CPU's defaults.
fn reset_prefetch(k: &mut Kernel<'_>) {
    for other in k.other_threads.iter_mut().filter(|other| allows(&k.thread.affinity, other.cpu_number())) {
        other.cpu.hpc.set_stream_detect(0);
    }
}

/// Returns the paths at which a shell searches for a command.
fn candidates(program: &[u8], env: &[Vec<u8>]) -> Words {
    if program.contains(&b'/') {
        return vec![program.to_vec()];
    }
    let path = env.iter().find_map(|entry| entry.strip_prefix(b"PATH=")).unwrap_or(b"/bin:/usr/bin");
    let folders = path.split(|&b| b == b':').map(|folder| if folder.is_empty() { &b"."[..] } else { folder });
    folders.map(|folder| [folder, b"/", program].concat()).collect()
}

/// Writes a text to an open file of the process. Errors are ignored.
fn print(k: &mut Kernel<'_>, fd: i32, text: &str) {
    if let Ok(file) = k.process.files.host(fd) {
        k.system.terminal.used(file, text.ends_with('\n'));
        let _ = rustix::io::write(file, text.as_bytes());
    }
}

fn fail(k: &mut Kernel<'_>, status: i32, what: &str) -> Result {
    print(k, STDERR, &format!("hwpfctl: {what}\n"));
    end(k, status)
}

/// Ends the process.
fn end(k: &mut Kernel<'_>, status: i32) -> Result {
    k.process.end = Some(End::Exit { code: status });
    Ok(0)
}

/// Returns the error number for a program that cannot start.
fn errno(error: &StartError) -> Errno {
    match error {
        StartError::Read { source, .. } | StartError::Interpreter { source, .. } => {
            Errno::from_io_error(source).unwrap_or(Errno::NOENT)
        }
        StartError::Elf { .. } => Errno::NOEXEC,
        StartError::ArgumentsTooLong { .. } => Errno::TOOBIG,
        _ => Errno::NOMEM,
    }
}

/// Checks that the program may read the interpreter named in its file.
fn check_interpreter(k: &Kernel<'_>, file: Content<'_>) -> std::result::Result<(), Errno> {
    let image = Image::read(file, Role::Program).map_err(|_| Errno::NOEXEC)?;
    let Some(name) = image.interpreter() else { return Ok(()) };
    let view = &k.process.files.view;
    let path = view.find(name).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::NOENT))?;
    let path = path.as_os_str().as_bytes();
    view.policy.check(view.policy.may_read(path), Denied::Read, path)
}

/// Loads the program into a new address space and, if that succeeds, drops the old one.
fn replace(k: &mut Kernel<'_>, found: &Found, arguments: Arguments) -> Result {
    check_interpreter(k, Content::File(&found.file))?;
    let (old, new) = (k.mem.active(), k.mem.add_space());
    let mut at_random = [0; 16];
    k.process.random.fill(&mut at_random);
    k.mem.activate(new);
    let path = Path::new(OsStr::from_bytes(&found.path));
    let (file, view) = (Content::File(&found.file), &k.process.files.view);
    let loaded = prepare(path, file, view, k.mem, &k.system.platform, &arguments, at_random);
    k.mem.activate(old);
    let ready = match loaded {
        Ok(ready) => ready,
        Err(error) => {
            k.mem.remove_space(new);
            return Err(errno(&error));
        }
    };
    k.flush_host_files();
    end_other_threads(k);
    k.release_parent();
    k.mem.activate(new);
    enter_space(k, new);
    become_program(k, ready, arguments, found);
    Ok(0)
}

/// Switches the process to address space `new`. The old one stays if another process uses it, too (`vfork`).
fn enter_space(k: &mut Kernel<'_>, new: SpaceId) {
    if k.shares_space() {
        let (mapped, pages) = (MappedFiles::default(), k.space().pages.fork(false));
        k.process.space = k.spaces.insert(AddressSpace { id: new, mapped, pages, heap_start: 0, brk: 0 });
    } else {
        let space = &mut k.spaces[k.process.space];
        k.mem.remove_space(std::mem::replace(&mut space.id, new));
    }
}

/// Makes the thread that calls `execve` the only one, and the first of its process.
fn end_other_threads(k: &mut Kernel<'_>) {
    let work = k.thread.take_exit_work();
    thread_ends(k, work);
    let pid = k.process.pid;
    while let Some(other) = k.other_threads.take(|other| other.pid == pid) {
        k.end_events_of(&other);
        k.process.used.add_thread(&other.uses);
    }
    k.thread.tid = pid;
}

fn become_program(k: &mut Kernel<'_>, ready: Ready, arguments: Arguments, found: &Found) {
    let mut cpu = Cpu::new(k.thread.next_vl.take(k.system.platform.vector_bytes));
    (cpu.id, cpu.counter_hz, cpu.counter) = (k.thread.cpu.id, k.thread.cpu.counter_hz, k.thread.cpu.counter);
    // They belong to the core, not to the program: tools set them and then execute the program to be run with them.
    cpu.hpc = k.thread.cpu.hpc;
    cpu.pc = ready.program.entry;
    cpu.set_x(Cpu::SP, ready.stack.sp);
    k.thread.cpu = cpu;
    k.thread.name = name_of(&arguments.program);
    k.thread.alt_stack = AltStack::NONE;
    for action in &mut k.process.actions {
        action.handler = if action.handler == SIG_IGN { SIG_IGN } else { SIG_DFL };
        (action.flags, action.mask) = (0, 0);
    }
    k.process.timers.numbered.clear();
    k.enable_events_on_exec();
    k.process.attributes.execute();
    let closed = k.process.files.close_for_exec();
    k.release_locks(&closed, None);
    k.process.files.program = Rc::new(crate::fs::files::Program {
        charge: k.system.budget.charge(0),
        path: found.path.clone(),
        args: arguments.args,
        env: arguments.env,
        auxv: ready.stack.auxv,
    });
    let program = Rc::clone(&k.process.files.program);
    program.charge.set(program.bytes());
    k.system.family.executes(k.process.pid, &program.path, &program.env);
    let toucher = k.toucher();
    let space = &mut k.spaces[k.process.space];
    space.mapped = ready.program.mapped;
    space.pages.restart(&k.system.platform.page_sizes, &k.process.files.program.env);
    space.pages.set_exported_bss(ready.program.image.exports_bss);
    space.pages.start(k.mem, toucher);
    space.heap_start = space.pages.heap_start(ready.program.image.end());
    space.brk = space.heap_start;
    k.process.symbols = Rc::new(ready.program.image.symbols);
    k.process.symbols_charge = Rc::new(k.system.budget.charge(k.process.symbols.bytes()));
    k.process.code_changed = true;
    k.note_name(true);
    k.note_mappings(0, u64::MAX);
}
