//! Unpacks and checks a lock's wheels from a folder: `unpack LOCK WHEELHOUSE ROOT [NAME…]`; what the benchmark times.

use camino::Utf8Path;
use requal::Outcome;
use requal::lock::Lock;
use xtask::fetch::{Origin, fetch};
use xtask::sys::env::Variables;
use xtask::unpack::{toolchain_links, unpack};

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [lock, wheelhouse, root, names @ ..] = &args[..] else {
        println!("unpack LOCK WHEELHOUSE ROOT [NAME…]");
        return Ok(());
    };
    let lock = Lock::parse(lock, &fs_err::read_to_string(lock)?)?;
    let packages: Vec<_> = lock
        .packages
        .into_iter()
        .filter(|package| names.is_empty() || names.contains(&package.name))
        .collect();
    let origin = Origin {
        scratch: Utf8Path::new(root).with_extension("scratch"),
        wheelhouse: Some(wheelhouse.into()),
        offline: true,
        settings: Variables::new(),
    };
    let pinned: Vec<_> = fetch(&packages, &origin)?.into_iter().map(|fetched| fetched.pinned).collect();
    let toolchain = unpack(&pinned, &toolchain_links(), Utf8Path::new(root))?;
    println!(
        "{} files, {} written, tree {}",
        toolchain.tree.files.len(),
        toolchain.written.len(),
        toolchain.tree.digest()
    );
    Ok(())
}
