//! Runs a program with the interpreter and with the translator, in turn, and compares what they do and how long it takes:
//! `compare ROUNDS PROGRAM [ARGUMENT…]`.

use std::path::Path;

use fxscope_aarch64::{Engine, Interpreter};
use fxscope_linux::{Code, Guest, Setup, Stdio};
use fxscope_translate::Translator;

#[path = "../../linux/tests/it/common/platform.rs"]
mod platform;

/// What a run did: instructions, output, seconds.
struct Done {
    instructions: u64,
    output: Vec<u8>,
    seconds: f64,
}

/// Returns the seconds that this thread has spent on a processor: other programs matter less to them.
fn on_processor() -> std::io::Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.map(|ns| ns / 1e9).ok_or_else(|| std::io::Error::other("no time in /proc/thread-self/schedstat"))
}

fn run<E: Engine>(program: &Path, arguments: &[String]) -> std::io::Result<Done> {
    let output = std::env::temp_dir().join(format!("compare-{}", std::process::id()));
    let file = std::fs::File::create(&output)?;
    let name = program.to_string_lossy().into_owned();
    let mut setup = Setup::new(platform::platform(64), &name)?;
    setup.args.extend(arguments.iter().map(|argument| argument.clone().into_bytes()));
    let null = || std::fs::File::options().read(true).write(true).open("/dev/null");
    setup.stdio = Stdio { input: null()?.into(), output: file.into(), error: null()?.into() };
    let mut guest = Guest::open(program, setup).map_err(std::io::Error::other)?;
    let mut code: Code<E> = Code::of(&guest);
    let start = on_processor()?;
    while guest.run_functional(&mut code, u64::MAX).is_none() {}
    let seconds = on_processor()? - start;
    let bytes = std::fs::read(&output)?;
    std::fs::remove_file(&output)?;
    Ok(Done { instructions: guest.instructions(), output: bytes, seconds })
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(rounds), Some(program)) = (arguments.first().and_then(|text| text.parse().ok()), arguments.get(1)) else {
        return Err(std::io::Error::other("usage: compare ROUNDS PROGRAM [ARGUMENT…]"));
    };
    let mut times = [Vec::new(), Vec::new()];
    let mut instructions = 0;
    for _ in 0..rounds {
        let program = Path::new(program);
        let both = [run::<Interpreter>(program, &arguments[2..])?, run::<Translator>(program, &arguments[2..])?];
        if both[0].output != both[1].output || both[0].instructions != both[1].instructions {
            let [one, other] = both.map(|done| done.instructions);
            return Err(std::io::Error::other(format!("the engines differ: {one} and {other} instructions")));
        }
        instructions = both[0].instructions;
        for (times, done) in times.iter_mut().zip(&both) {
            times.push(done.seconds);
        }
    }
    let [one, other] = times.map(|mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    let rate = |seconds: f64| instructions as f64 / seconds / 1e6;
    println!("{instructions} instructions, {:.0} and {:.0} M/s, ratio {:.2}", rate(one), rate(other), one / other);
    Ok(())
}
