-- The lines cannot be written in SQL, which computes no slots, and without these rows nothing would write them (I6).
do $$
begin
  if exists (select from carillon.slot_backlogs) then
    raise exception 'expected every due slot to have its line, got some that wait in carillon.slot_backlogs: let a worker write them first';
  end if;
end
$$;
drop table carillon.slot_backlogs;
