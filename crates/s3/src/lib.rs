//! A small S3 server on loopback for embedded fleets.
