//! Real servers of the protocols that buckets speak, each on a free port of the loopback and ready when it is returned.
//!
//! A server ends with its [`BucketServer`], and also when the test process ends in any other way: it is started by a
//! keeper, a shell that holds one end of a pipe. When the other end closes, for whatever reason, the keeper kills the
//! server and removes its files.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use taco_ledger::Location;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::fake_gcs::FakeGcs;

/// The one bucket that each server has.
pub const BUCKET: &str = "taco-tests";

/// A server is given this long to listen. It is generous because a machine that runs tests may be busy.
const START_TIMEOUT: Duration = Duration::from_secs(60);

const ACCESS_KEY_ID: &str = "taco-tests";
const SECRET_ACCESS_KEY: &str = "not-a-secret";

/// The account that every installation of Azure's emulator has.
const AZURE_ACCOUNT: &str = "devstoreaccount1";
const AZURE_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// The right to create containers in that account until the year 2100, signed once with the key above, which spares us
/// the code to sign: HMAC-SHA256 of `devstoreaccount1\nrwlc\nb\nc\n\n2100-01-01T00:00:00Z\n\n\n2022-11-02\n\n`.
const AZURE_MAY_CREATE_CONTAINERS: &str =
    "sv=2022-11-02&ss=b&srt=c&sp=rwlc&se=2100-01-01T00:00:00Z&sig=cuMFwGVbXGL2kkUwk6bPIA%2Fyck0kDHF39X4dWxxh4pE%3D";

/// A running server with an empty bucket.
pub struct BucketServer {
    location: Location,
    process: Option<Process>,
    _in_this_process: Option<FakeGcs>,
}

impl BucketServer {
    /// S3 in memory: the quickest to start.
    pub async fn gofakes3() -> anyhow::Result<Self> {
        Self::start(
            "TACO_TEST_GOFAKES3",
            |port, _| {
                vec!["-backend=memory".into(), format!("-initialbucket={BUCKET}"), format!("-host=127.0.0.1:{port}")]
            },
            s3_at,
        )
        .await
    }

    /// S3 on files: what was acknowledged survives the server.
    pub async fn versitygw() -> anyhow::Result<Self> {
        Self::versitygw_in(|scratch| scratch.join("data")).await
    }

    /// The same on a directory of the caller's, on which several may run at once.
    pub async fn versitygw_on(directory: &Path) -> anyhow::Result<Self> {
        Self::versitygw_in(|_| directory.to_owned()).await
    }

    async fn versitygw_in(directory: impl Fn(&Path) -> PathBuf) -> anyhow::Result<Self> {
        Self::start(
            "TACO_TEST_VERSITYGW",
            |port, scratch| {
                let directory = directory(scratch);
                with_bucket(&directory);
                vec![
                    format!("--port=127.0.0.1:{port}"),
                    format!("--access={ACCESS_KEY_ID}"),
                    format!("--secret={SECRET_ACCESS_KEY}"),
                    "--keep-alive".into(),
                    "--quiet".into(),
                    "posix".into(),
                    directory.display().to_string(),
                ]
            },
            s3_at,
        )
        .await
    }

    /// S3 as it must not be: of several who create one object at the same moment, several are told that they did.
    pub async fn s3s_fs() -> anyhow::Result<Self> {
        Self::start(
            "TACO_TEST_S3S_FS",
            |port, scratch| {
                let directory = scratch.join("data");
                with_bucket(&directory);
                vec![
                    "--host=127.0.0.1".into(),
                    format!("--port={port}"),
                    format!("--access-key={ACCESS_KEY_ID}"),
                    format!("--secret-key={SECRET_ACCESS_KEY}"),
                    directory.display().to_string(),
                ]
            },
            s3_at,
        )
        .await
    }

    /// Azure Blob Storage, in memory.
    pub async fn azurite() -> anyhow::Result<Self> {
        let server = Self::start(
            "TACO_TEST_AZURITE",
            |port, _| {
                vec![
                    "--blobHost=127.0.0.1".into(),
                    format!("--blobPort={port}"),
                    "--inMemoryPersistence".into(),
                    "--skipApiVersionCheck".into(),
                    "--disableTelemetry".into(),
                    "--silent".into(),
                ]
            },
            |port| Location {
                url: format!("az://{BUCKET}"),
                azure_endpoint: Some(format!("http://127.0.0.1:{port}/{AZURE_ACCOUNT}")),
                azure_account: Some(AZURE_ACCOUNT.to_owned()),
                azure_access_key: Some(AZURE_KEY.to_owned()),
                ..Location::default()
            },
        )
        .await?;
        let endpoint = server.location.azure_endpoint.as_deref().unwrap_or_default();
        let create_container = format!("{endpoint}/{BUCKET}?restype=container&{AZURE_MAY_CREATE_CONTAINERS}");
        reqwest::Client::new()
            .put(create_container)
            .header("content-length", "0")
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .context("azurite did not create the container")?;
        Ok(server)
    }

    /// Google Cloud Storage, as far as we use it: a thread of this process.
    pub async fn fake_gcs() -> anyhow::Result<Self> {
        Self::far_gcs(Duration::ZERO)
    }

    /// The same, with this much added to every request.
    pub fn far_gcs(away: Duration) -> anyhow::Result<Self> {
        let fake = FakeGcs::start_away(BUCKET, away)?;
        let key = serde_json::json!({
            "gcs_base_url": format!("http://{}", fake.address()),
            "disable_oauth": true,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        });
        let location = Location {
            url: format!("gs://{BUCKET}"),
            gcs_service_account_key: Some(key.to_string()),
            ..Location::default()
        };
        Ok(Self { location, process: None, _in_this_process: Some(fake) })
    }

    /// Location with which to open the server's bucket.
    pub fn location(&self) -> Location {
        self.location.clone()
    }

    /// Location with which to open a part of the bucket as if it were a bucket: this isolates tests that share a
    /// server.
    pub fn location_under(&self, prefix: &str) -> Location {
        let mut location = self.location();
        location.url = format!("{}/{prefix}", location.url);
        location
    }

    /// Kills the server as a power failure would, until [`Self::restart`].
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.process.as_mut().context("a server inside this process cannot be killed")?.stop(Farewell::KeepFiles);
        Ok(())
    }

    /// Sends the server a signal, for example SIGSTOP so that it answers no request.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let process = self.process.as_ref().context("a server inside this process has no signals of its own")?;
        Ok(kill(process.server, signal)?)
    }

    /// Kills the server as a power failure would, and starts it again at the same address and on the same files.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        let process = self.process.as_mut().context("a server inside this process cannot be killed")?;
        process.stop(Farewell::KeepFiles);
        *process = Process::start(process.recipe.clone()).await?;
        Ok(())
    }

    async fn start(
        variable: &str,
        arguments: impl Fn(u16, &Path) -> Vec<String>,
        location: impl Fn(u16) -> Location,
    ) -> anyhow::Result<Self> {
        let program = program(variable)?;
        let mut attempts = 0;
        loop {
            let port = free_port()?;
            let scratch = tempfile::Builder::new().prefix("taco-bucket-").tempdir()?.keep();
            let arguments = arguments(port, &scratch);
            match Process::start(Recipe { program: program.clone(), arguments, port, scratch }).await {
                Ok(process) => {
                    return Ok(Self { location: location(port), process: Some(process), _in_this_process: None });
                }
                // Somebody else may have taken the port meanwhile.
                Err(error) if attempts == 2 => return Err(error),
                Err(_) => attempts += 1,
            }
        }
    }
}

/// Environment variables with which a user would have taco open this location.
pub fn variables_of(location: &Location) -> Vec<(&'static str, String)> {
    let url = Some(location.url.clone());
    let variables = [
        ("TACO_BUCKET", &url),
        ("TACO_S3_ENDPOINT", &location.s3_endpoint),
        ("TACO_S3_REGION", &location.s3_region),
        ("TACO_S3_ACCESS_KEY_ID", &location.s3_access_key_id),
        ("TACO_S3_SECRET_ACCESS_KEY", &location.s3_secret_access_key),
        ("TACO_GCS_SERVICE_ACCOUNT_KEY", &location.gcs_service_account_key),
        ("TACO_AZURE_ACCOUNT", &location.azure_account),
        ("TACO_AZURE_ACCESS_KEY", &location.azure_access_key),
        ("TACO_AZURE_ENDPOINT", &location.azure_endpoint),
    ];
    variables.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
}

fn program(variable: &str) -> anyhow::Result<PathBuf> {
    let advice = r#"run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#;
    std::env::var_os(variable).map(PathBuf::from).with_context(|| format!("{variable} is not set: {advice}"))
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Both servers that keep files take each folder for a bucket.
fn with_bucket(directory: &Path) {
    std::fs::create_dir_all(directory.join(BUCKET)).expect("a temporary directory can be written");
}

fn s3_at(port: u16) -> Location {
    Location {
        url: format!("s3://{BUCKET}"),
        s3_endpoint: Some(format!("http://127.0.0.1:{port}")),
        s3_region: Some("us-east-1".to_owned()),
        s3_access_key_id: Some(ACCESS_KEY_ID.to_owned()),
        s3_secret_access_key: Some(SECRET_ACCESS_KEY.to_owned()),
        ..Location::default()
    }
}

/// Starts the server, tells its process id, and lives until both the server and the holder of the pipe are gone.
const KEEPER: &str = r#"
scratch=$1; shift
trap '' INT TERM HUP
exec 3<&0
"$@" </dev/null >"$scratch/server.log" 2>&1 3<&- &
server=$!
echo "$server"
exec >/dev/null
{
    read -r farewell <&3
    kill -9 "$server" 2>/dev/null
    [ "$farewell" = keep ] || rm -rf "$scratch"
} &
wait "$server"
wait
"#;

#[derive(Clone)]
struct Recipe {
    program: PathBuf,
    arguments: Vec<String>,
    port: u16,
    scratch: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Farewell {
    KeepFiles,
    RemoveFiles,
}

struct Process {
    recipe: Recipe,
    keeper: Child,
    pipe: Option<ChildStdin>,
    server: Pid,
}

impl Process {
    async fn start(recipe: Recipe) -> anyhow::Result<Self> {
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&recipe.scratch)
            .arg(&recipe.program)
            .args(&recipe.arguments)
            .current_dir(&recipe.scratch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting sh")?;
        let pipe = keeper.stdin.take();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().context("the keeper has no output")?).read_line(&mut line)?;
        let server = Pid::from_raw(line.trim().parse().context("the keeper did not tell the server's process id")?);
        let process = Self { recipe, keeper, pipe, server };
        process.wait_until_ready().await?;
        Ok(process)
    }

    async fn wait_until_ready(&self) -> anyhow::Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.recipe.port));
        let begun = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            let said = || std::fs::read_to_string(self.recipe.scratch.join("server.log")).unwrap_or_default();
            let program = self.recipe.program.display();
            ensure!(kill(self.server, None).is_ok(), "{program} ended at once and said: {}", said());
            ensure!(begun.elapsed() < START_TIMEOUT, "{program} does not listen on {address} and said: {}", said());
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    fn stop(&mut self, farewell: Farewell) {
        let Some(mut pipe) = self.pipe.take() else { return };
        if farewell == Farewell::KeepFiles {
            let _ = pipe.write_all(b"keep\n");
        }
        drop(pipe);
        let _ = self.keeper.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop(Farewell::RemoveFiles);
    }
}
