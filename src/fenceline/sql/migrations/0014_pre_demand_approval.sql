-- compatible_from: 1
--
-- Approval that a kind demands, whatever a request says, and which identities its jobs may name. What lanes demand and who may
-- approve is in 0020 and 0022: a migration that alters one busy table gets its lock, one that wants three seldom does.

alter table fenceline.kind
  add column needs_approval boolean,   -- the decorator's word; null: no
  add column identities jsonb;         -- {"tenant:acme": ["billing"], "role:operator": ["*"], "*": […]}; null: any
