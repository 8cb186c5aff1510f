//! Unpacks and checks a lock's wheels from a folder: `unpack LOCK WHEELHOUSE ROOT [NAME…]`; what the benchmark times.

use camino::Utf8Path;
use requal::Outcome;
use requal::lock::Lock;
use requal::wheel::Pinned;
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
    let pinned = requal::parallel::map(&packages, |package| {
        Pinned::new(fs_err::read(Utf8Path::new(wheelhouse).join(&package.file))?, package)
    });
    let pinned = pinned.into_iter().collect::<Outcome<Vec<_>>>()?;
    let toolchain = unpack(&pinned, &toolchain_links(), Utf8Path::new(root))?;
    println!(
        "{} files, {} written, tree {}",
        toolchain.tree.files.len(),
        toolchain.written.len(),
        toolchain.tree.digest()
    );
    Ok(())
}
