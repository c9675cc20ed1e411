drop table tally_counts;
