// Package interop asks our SQL about tables that others wrote, and compares with
// the rows that they read. The cases lie beside a full checkout, in
// ../shared/fixtures: tables of Java Paimon 0.9 and 2.1 (java, java/legacy-0.9)
// and of releases between them (cpp).
//
// A case passes, is refused (0A000: a feature that is not there yet), or is
// wrong: another error, or other rows. Nothing may be wrong. What an ordinary
// reader of Paimon must be able to do may not be refused either; mustPass says
// which cases those are, from the tables' own files.
package interop
