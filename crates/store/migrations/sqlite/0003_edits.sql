-- What an edited answer brought, and what ran by it. Goes with the words when the session is removed.
ALTER TABLE rulings ADD COLUMN new_content TEXT;
ALTER TABLE rulings ADD COLUMN new_input TEXT;   -- JSON: the arguments
ALTER TABLE rulings ADD COLUMN runs TEXT;        -- JSON: title, arguments and details of the call that ran
