# SPDX-License-Identifier: Apache-2.0
"""Texts of files as people have them on disk."""

PENGUINS = """\
studyName,Sample Number,Species,Region,Island,Stage,Individual ID,Clutch Completion,Date Egg,\
Culmen Length (mm),\
Culmen Depth (mm),Flipper Length (mm),Body Mass (g),Sex,Delta 15 N (o/oo),Delta 13 C (o/oo),Comments
PAL0708,1,Adelie Penguin (Pygoscelis adeliae),Anvers,Torgersen,"Adult, 1 Egg Stage",N1A1,Yes,\
2007-11-11,38.1,18.9,182,3760,MALE,NA,NA,"Too little blood, no isotopes."
PAL0708,2,Adelie Penguin (Pygoscelis adeliae),Anvers,Torgersen,"Adult, 1 Egg Stage",N1A2,Yes,\
2007-11-11,39.9,17.1,187,3810,FEMALE,8.91,-24.71,NA
PAL0708,3,Adelie Penguin (Pygoscelis adeliae),Anvers,Torgersen,"Adult, 1 Egg Stage",N2A1,No,\
2007-11-16,NA,NA,NA,NA,NA,NA,NA,Adult not sampled.
PAL0910,4,Gentoo penguin (Pygoscelis papua),Anvers,Biscoe,"Adult, 1 Egg Stage",N3A1,Yes,2009-11-27,\
45.2,14.1,212,5010,.,8.2,-25.9,NA
PAL0910,5,Chinstrap penguin (Pygoscelis antarctica),Anvers,Dream,"Adult, 1 Egg Stage",N4A1,Yes,\
2009-11-21,49.6,18.3,195,3705,FEMALE,9.3,-24.6,NA
"""
"""In the form of the raw file of palmerpenguins, with cells of our own."""

GERMAN = """\
Aufnahmen der Klinik

Größe;Einkommen;Aufnahme;Ort;
1,75;1.234,5;31.12.2020;München;
1,80;k.A.;01.02.2021;Köln;
1,66;12.000;;Köln;
;;;;
;;;;
"""
"""As a German spreadsheet saves it as CSV; it is encoded in Windows-1252 there."""
