//! What tests start and ask: servers, buckets, and the people who use them.

pub mod api_client;
pub mod api_server;
pub mod binary;
pub mod browser;
pub mod bucket_servers;
pub mod cable;
pub mod certificate;
pub mod chromium;
pub mod configurations;
pub mod curator;
pub mod engine;
pub mod exhibits;
pub mod fake_gcs;
pub mod gallery;
pub mod home;
pub mod installation;
pub mod kill_point;
pub mod page_routes;
pub mod pages;
pub mod process;
pub mod provider_mirror;
pub mod proxy;
pub mod run_site;
pub mod shelves;
pub mod stand_in_engine;
pub mod way_station;
