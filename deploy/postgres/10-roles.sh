#!/usr/bin/env bash
# Run once by the postgres image, on an empty volume: a database whose owner is no superuser, and a login per program with just
# what it needs. The passwords are in deploy/.env (deploy/make-passwords).
#
#   fenceline_owner    owns the schema; only `fenceline migrate` uses it
#   fenceline_http     the server: whatever an operator may do, tokens included
#   fenceline_run      workers: claim, finish, enqueue. A handler can neither make a token nor change a lane
#   fenceline_enqueue  producers and CronJobs
set -euo pipefail

psql --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv owner OWNER_PASSWORD
\getenv http SERVER_PASSWORD
\getenv run WORKER_PASSWORD
\getenv enqueue PRODUCER_PASSWORD
create role fenceline_producer;
create role fenceline_worker;
create role fenceline_reader;
create role fenceline_admin;
create role fenceline_owner login password :'owner';
create role fenceline_http login password :'http' in role fenceline_admin;
create role fenceline_run login password :'run' in role fenceline_worker, fenceline_producer;
create role fenceline_enqueue login password :'enqueue' in role fenceline_producer;
create database fenceline owner fenceline_owner;
revoke all on database fenceline from public;
grant connect on database fenceline to fenceline_http, fenceline_run, fenceline_enqueue;
SQL
