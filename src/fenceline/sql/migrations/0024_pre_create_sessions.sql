-- compatible_from: 1
--
-- People in browsers: their sessions, and codes that open one without showing a token.

create table fenceline.session (
  hash bytea primary key check (octet_length(hash) = 32),
  token integer,                      -- that it was opened with, and ends with; null: an identity provider said who it is
  actor text,                         -- these three where there is no token
  role text,
  tenant text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  check ((token is null) = (actor is not null and role is not null and tenant is not null))
);

create table fenceline.login_code (
  hash bytea primary key check (octet_length(hash) = 32),
  token integer not null,
  expires_at timestamptz not null
);
