//! `cargo xtask …`: parse, dispatch, exit code.

fn main() {
    xtask::sys::sandbox::enter_if_asked();
    if let Err(failure) = xtask::sys::interrupt::watch() {
        anstream::eprint!("{failure}");
        std::process::exit(failure.exit.code().into());
    }
}
