create table item (id integer primary key, name text, price real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
    insert into item select i, 'item ' || (i * 7919 % 5000), (i * 31 % 1000) / 8.0 from n;
create index by_price on item (price);
select count(*), sum(price), min(name), max(name) from item;
select name, price from item where price between 100 and 101 order by price, name limit 5;
begin;
update item set price = price * 2 where id % 10 = 0;
delete from item where id % 7 = 0;
commit;
select count(*), avg(price), group_concat(id) from (select * from item order by price desc, id limit 10);
pragma integrity_check;
