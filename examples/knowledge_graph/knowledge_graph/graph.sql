create schema if not exists kg;

create table if not exists kg.source (name text primary key, ontology text not null, embedding real[]);

-- token: of the attempt that wrote it
create table if not exists kg.chunk (
    source text, number integer, content text not null, token bigint not null, primary key (source, number)
);

create table if not exists kg.concept (
    name text primary key, ontology text not null, confidence real, x real, y real
);

create table if not exists kg.mention (
    concept text, source text, chunk integer, primary key (concept, source, chunk)
);

create table if not exists kg.vocabulary (ontology text primary key, concepts integer not null, refreshed_at timestamptz not null);

create table if not exists kg.proposal (
    id integer generated always as identity primary key, keep text not null, merge text not null, executed boolean not null default false,
    unique (keep, merge)
);

create table if not exists kg.artifact (
    id integer generated always as identity primary key, content jsonb not null, created_at timestamptz not null default now()
);
